//! Why a program, or the keeper, could not be started; each in a sentence for a tired operator.

use std::error::Error;
use std::fmt;
use std::io;

/// The keeper cannot be had. Grouped by blame: the embedder's, then the system's.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// [`init`](crate::init) was not called at the top of `main`.
    NotInitialised,
    /// [`init`](crate::init) was called after threads had been started.
    ThreadsRunning {
        /// How many threads there were, the caller's included.
        threads: usize,
    },
    /// The keeper was started and did not report itself within [`crate::KEEPER_START_MAX`].
    KeeperSilent,
    /// A system call failed.
    System {
        /// What was being done, as in "cannot …".
        doing: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
}

impl SpawnError {
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { doing, error }
    }

    pub(crate) fn kernel(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { doing, error: errno.into() }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialised => to.write_str(
                "no programs can be started: spawn::init() was not called at the top of main",
            ),
            Self::ThreadsRunning { threads } => write!(
                to,
                "spawn::init() must be the first thing in main, but {threads} threads run already"
            ),
            Self::KeeperSilent => write!(
                to,
                "the keeper process was started but did not report within {:?}; does main call \
                 spawn::init() first?",
                crate::KEEPER_START_MAX
            ),
            Self::System { doing, error } => write!(to, "cannot {doing}: {error}"),
        }
    }
}

impl Error for SpawnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// One program could not be started. Grouped by blame: the operator's (up to `Nul`), a limit's
/// (`TooLong`, `System`), ours.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// No file of that name.
    NotFound {
        /// As configured.
        program: String,
        /// The `PATH` that was searched; `None` when the name holds a slash and was taken as is.
        path: Option<String>,
    },
    /// There is a file, and it may not be executed.
    NotExecutable {
        /// The file.
        file: String,
    },
    /// The name is a directory's.
    Directory {
        /// The directory.
        file: String,
    },
    /// A script whose `#!` line (or a binary whose loader) names a file that is not there.
    NoInterpreter {
        /// The script or binary.
        file: String,
        /// What it asks for; empty when that cannot be read.
        interpreter: String,
    },
    /// Neither a binary for this machine nor a script with a `#!` line.
    NotAProgram {
        /// The file.
        file: String,
    },
    /// The working directory cannot be entered.
    WorkingDirectory {
        /// The directory.
        directory: String,
        /// The kernel's error number.
        errno: i32,
    },
    /// There is no user of that name or number.
    NoUser {
        /// As configured.
        user: String,
    },
    /// There is no group of that name, or the user is a number that belongs to no group.
    NoGroup {
        /// As configured; the user's number, when there is no group.
        group: String,
    },
    /// It cannot be held to what was asked for.
    Bounds {
        /// What was being done, as in "cannot …".
        doing: String,
        /// The kernel's error number.
        errno: i32,
    },
    /// `libstdbuf`, by which output is unbuffered, is not where coreutils put it.
    NoStdbuf,
    /// A NUL byte in the program, an argument, the directory or the environment.
    Nul,
    /// Program, arguments and environment are longer together than can be handed over.
    TooLong {
        /// Their length; 0 when it is the kernel that found them too long.
        bytes: usize,
    },
    /// A system call failed, most often at a limit.
    System {
        /// What was being done.
        step: Step,
        /// The kernel's error number.
        errno: i32,
    },
    /// The keeper was lost, or cannot be started, so it is not known whether the program ran. It
    /// does not run any more.
    KeeperLost,
    /// The token is that of a program which has not ended yet.
    TokenInUse,
}

/// What failed in [`StartError::System`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Making or handing over the pipes for standard input, output and error.
    Pipes,
    /// Making the process.
    Fork,
    /// Executing the file.
    Execute,
}

impl StartError {
    /// Whether this process, or the system, has as many files open as it may.
    #[must_use]
    pub const fn lacks_descriptor(&self) -> bool {
        matches!(self, Self::System { errno: libc::EMFILE | libc::ENFILE, .. })
    }

    /// What kind of failure it is, for somebody who is not to be told names and paths.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "the program was not found",
            Self::NotExecutable { .. } => "the program may not be executed",
            Self::Directory { .. } => "the program is a directory",
            Self::NoInterpreter { .. } => "the interpreter of the program was not found",
            Self::NotAProgram { .. } => "the program is of a kind that cannot be executed",
            Self::WorkingDirectory { .. } => "the working directory cannot be entered",
            Self::NoUser { .. } | Self::NoGroup { .. } => "its user or group does not exist",
            Self::Bounds { .. } => "its limits cannot be set",
            Self::NoStdbuf => "its output cannot be unbuffered",
            Self::Nul | Self::TooLong { .. } => "its arguments or environment cannot be passed on",
            Self::System { .. } => "the system could not start it",
            Self::KeeperLost | Self::TokenInUse => "its supervisor was lost",
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { program, path: Some(path) } => {
                write!(to, "program `{program}` was not found in any directory of PATH={path}")
            }
            Self::NotFound { program, path: None } => {
                write!(to, "program `{program}` was not found: there is no such file")
            }
            Self::NotExecutable { file } => write!(
                to,
                "program `{file}` may not be executed: is it missing execute permission (chmod \
                 +x), or on a file system mounted noexec?"
            ),
            Self::Directory { file } => write!(to, "program `{file}` is a directory"),
            Self::NoInterpreter { file, interpreter } if interpreter.is_empty() => write!(
                to,
                "program `{file}` is there, but the interpreter or loader it needs is not"
            ),
            Self::NoInterpreter { file, interpreter } => write!(
                to,
                "program `{file}` is there, but its first line asks for `{interpreter}`, which is \
                 not"
            ),
            Self::NotAProgram { file } => write!(
                to,
                "program `{file}` is neither a binary for this machine nor a script that begins \
                 with #! and its interpreter"
            ),
            Self::WorkingDirectory { directory, errno } => {
                write!(to, "cannot enter the working directory `{directory}`: {}", said(*errno))
            }
            Self::NoUser { user } => {
                write!(to, "there is no user `{user}`; name one of /etc/passwd, or give a number")
            }
            Self::NoGroup { group } => write!(
                to,
                "there is no group `{group}`; name one of /etc/group, or give a number as `group`"
            ),
            Self::Bounds { doing, errno } => write!(to, "cannot {doing}: {}", said(*errno)),
            Self::NoStdbuf => to.write_str(
                "libstdbuf.so of coreutils is not installed; unbuffer the program by a terminal \
                 (pty), or in its own way",
            ),
            Self::Nul => to.write_str(
                "a NUL byte in the program, an argument, the directory or the environment",
            ),
            Self::TooLong { bytes: 0 } => {
                to.write_str("the system finds the arguments and environment too long")
            }
            Self::TooLong { bytes } => write!(
                to,
                "program, arguments and environment are {bytes} bytes together; at most {} can be \
                 handed over",
                crate::COMMAND_BYTES_MAX
            ),
            Self::System { step, errno } => {
                let doing = match step {
                    Step::Pipes => "make its pipes",
                    Step::Fork => "make its process",
                    Step::Execute => "execute it",
                };
                write!(to, "cannot {doing}: {}", said(*errno))
            }
            Self::KeeperLost => to.write_str("the keeper process was lost while it started"),
            Self::TokenInUse => to.write_str("its token is that of a program still running"),
        }
    }
}

impl Error for StartError {}

fn said(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
