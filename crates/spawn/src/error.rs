//! The reasons why a program or the supervisor could not be started. Each message states what is wrong and, where
//! possible, what to do.

use std::error::Error;
use std::fmt;
use std::io;

/// The supervisor is not available. Ordered by cause: errors of the embedding program, then errors of the system.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// [`init`](crate::init) was not called at the top of `main`.
    NotInitialised,
    /// [`init`](crate::init) was called after threads had been started.
    ThreadsRunning {
        /// The number of threads, including the caller.
        threads: usize,
    },
    /// The supervisor was started and did not report within [`crate::SUPERVISOR_START_MAX`].
    SupervisorSilent,
    /// A system call failed.
    System {
        /// The failed action, for a message that begins with "cannot …".
        doing: &'static str,
        /// The error of the kernel.
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
            Self::SupervisorSilent => write!(
                to,
                "the supervisor process was started but did not report within {:?}; does main call \
                 spawn::init() first?",
                crate::SUPERVISOR_START_MAX
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

/// A program could not be started. Ordered by cause: errors of the operator (up to `Nul`), limits (`TooLong`,
/// `System`), errors of the daemon.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// No file has this name.
    NotFound {
        /// The name as configured.
        program: String,
        /// The `PATH` that was searched; `None` if the name contains a slash and was used as a path.
        path: Option<String>,
    },
    /// The file exists but may not be executed.
    NotExecutable {
        /// The file.
        file: String,
    },
    /// The name refers to a directory.
    Directory {
        /// The directory.
        file: String,
    },
    /// The interpreter in the `#!` line of a script, or the loader of a binary, does not exist.
    NoInterpreter {
        /// The script or binary.
        file: String,
        /// The interpreter or loader; empty if it cannot be read.
        interpreter: String,
    },
    /// The file is neither a binary for this machine nor a script with a `#!` line.
    NotAProgram {
        /// The file.
        file: String,
    },
    /// The working directory cannot be entered.
    WorkingDirectory {
        /// The directory.
        directory: String,
        /// The error number of the kernel.
        errno: i32,
    },
    /// No user has this name or number.
    NoUser {
        /// The user as configured.
        user: String,
    },
    /// No group has this name, or the user is a number that belongs to no group.
    NoGroup {
        /// The group as configured, or the number of the user if no group is configured.
        group: String,
    },
    /// A limit, the user or the group could not be set.
    Bounds {
        /// The failed action, for a message that begins with "cannot …".
        doing: String,
        /// The error number of the kernel.
        errno: i32,
    },
    /// `libstdbuf`, which unbuffers output, is not at any path where coreutils installs it.
    NoStdbuf,
    /// The program, an argument, the directory or the environment contains a NUL byte.
    Nul,
    /// Program, arguments and environment together exceed the maximum size.
    TooLong {
        /// Their size in bytes; 0 if the kernel rejected them.
        bytes: usize,
    },
    /// A system call failed, usually because a limit was reached.
    System {
        /// The failed step.
        step: Step,
        /// The error number of the kernel.
        errno: i32,
    },
    /// The supervisor was lost, or cannot be started, so it is unknown whether the program ran. The program does not
    /// run any more.
    SupervisorLost,
    /// The token belongs to a program that has not ended yet.
    TokenInUse,
}

/// The failed step of [`StartError::System`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Creating or passing the pipes for standard input, output and error.
    Pipes,
    /// Creating the process.
    Fork,
    /// Executing the file.
    Execute,
}

impl StartError {
    /// Whether this process, or the system, has reached its limit of open files.
    #[must_use]
    pub const fn lacks_descriptor(&self) -> bool {
        matches!(self, Self::System { errno: libc::EMFILE | libc::ENFILE, .. })
    }

    /// Returns the kind of failure, for readers who must not see names and paths.
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
            Self::SupervisorLost | Self::TokenInUse => "its supervisor was lost",
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
                write!(to, "cannot enter the working directory `{directory}`: {}", os_error(*errno))
            }
            Self::NoUser { user } => {
                write!(to, "there is no user `{user}`; name one of /etc/passwd, or give a number")
            }
            Self::NoGroup { group } => write!(
                to,
                "there is no group `{group}`; name one of /etc/group, or give a number as `group`"
            ),
            Self::Bounds { doing, errno } => write!(to, "cannot {doing}: {}", os_error(*errno)),
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
                write!(to, "cannot {doing}: {}", os_error(*errno))
            }
            Self::SupervisorLost => {
                to.write_str("the supervisor process was lost while it started")
            }
            Self::TokenInUse => to.write_str("its token is that of a program still running"),
        }
    }
}

impl Error for StartError {}

fn os_error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
