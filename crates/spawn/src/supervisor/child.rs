//! Starts a program: the fork, and the steps of the child until execve.
//!
//! The child runs ordinary code after the fork. This is sound because the supervisor has one thread. Operations that
//! can block (such as a search in a network file system) block only the child. The child reports an error through a
//! pipe that closes on execve: if the pipe closes without data, the program runs.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal};

use super::cgroup::Group;
use super::confine;
use crate::error::{StartError, Step};
use crate::message::{self, Start};
use crate::system::{self, Account, Fork};

/// The directories that are searched if there is no `PATH`.
const PATH_DEFAULT: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// The maximum size of an error report, in bytes: an error with one or two names and a `PATH`.
const VERDICT_BYTES_MAX: usize = 512 * 1024;

/// Variables that a service manager sets for the daemon only.
const OF_THE_SERVICE: &[&[u8]] = &[
    b"CREDENTIALS_DIRECTORY",
    b"FDSTORE",
    b"LISTEN_FDNAMES",
    b"LISTEN_FDS",
    b"LISTEN_PID",
    b"LISTEN_PIDFDID",
    b"NOTIFY_SOCKET",
    b"WATCHDOG_PID",
    b"WATCHDOG_USEC",
];

/// The variable that marks a start. Its value is `SUPERVISOR_PID.NUMBER`.
pub(super) const START_MARK: &str = "ROADSTEAD_START";

/// The signals that the supervisor ignores, and that its programs do not ignore.
pub(super) const IGNORED: [i32; 5] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE];

/// The variables with which the daemon was started, and therefore the supervisor, without those for the daemon only.
pub(super) struct Environment(Vec<(Vec<u8>, Vec<u8>)>);

impl Environment {
    pub(super) fn inherited() -> Self {
        let bytes = OsString::into_vec;
        let all = std::env::vars_os().map(|(name, value)| (bytes(name), bytes(value)));
        Self(all.filter(|(name, _)| !OF_THE_SERVICE.contains(&name.as_slice())).collect())
    }

    /// Returns the variables for a start: the inherited variables without the withheld ones, and those of the start,
    /// which are added or replace others. With `env_clear`, only those of the start. If a name occurs twice, the last
    /// value is used. The mark is the first variable, because only the start of an environment is searched for it.
    fn of(&self, start: &Start, mark: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let inherited = if start.env_clear { &[][..] } else { &self.0[..] };
        let inherited = inherited.iter().filter(|(name, _)| !start.withheld.contains(name));
        let mut all: Vec<(Vec<u8>, Vec<u8>)> =
            Vec::with_capacity(self.0.len() + start.env.len() + 1);
        all.push((START_MARK.into(), mark.into()));
        let others = inherited.chain(&start.env).filter(|(name, _)| name != START_MARK.as_bytes());
        for variable in others {
            match all.iter_mut().find(|(name, _)| *name == variable.0) {
                Some((_, value)) => value.clone_from(&variable.1),
                None => all.push(variable.clone()),
            }
        }
        all
    }
}

/// A child between fork and execve.
pub(super) struct Executing {
    verdict: OwnedFd,
    bytes: Vec<u8>,
}

impl Executing {
    /// Returns the result of the start, or `None` while it is not known.
    pub(super) fn outcome(&mut self) -> Option<Result<(), StartError>> {
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(&self.verdict, &mut buffer) {
                Ok(0) => break,
                Ok(count) if self.bytes.len() < VERDICT_BYTES_MAX => {
                    self.bytes.extend(&buffer[..count]);
                }
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        if self.bytes.is_empty() {
            return Some(Ok(()));
        }
        let unreadable = StartError::System { step: Step::Execute, errno: libc::EIO };
        Some(Err(message::decode_error(&self.bytes).unwrap_or(unreadable)))
    }
}

impl AsFd for Executing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.verdict.as_fd()
    }
}

/// The descriptors of a program.
pub(super) struct ProgramDescriptors {
    pipes: [OwnedFd; 3],
    /// The socket on which it serves.
    socket: Option<OwnedFd>,
}

impl ProgramDescriptors {
    /// Takes the descriptors that were received with a start. Returns `None` if some are missing.
    pub(super) fn of(mut came: Vec<OwnedFd>, serves: bool) -> Option<Self> {
        let socket = if serves && came.len() == 4 { came.pop() } else { None };
        let pipes = came.try_into().ok()?;
        (socket.is_some() == serves).then_some(Self { pipes, socket })
    }
}

/// Forks; the child executes the program. `ends` are closed in this process in any case.
pub(super) fn launch(
    environment: &Environment,
    mark: &str,
    start: &Start,
    ends: ProgramDescriptors,
    group: Option<&Group>,
    descriptors: Option<u64>,
) -> Result<(i32, Executing), StartError> {
    let system = |step| move |errno| StartError::System { step, errno };
    let (verdict, error_pipe) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(rustix::io::Errno::raw_os_error)
        .map_err(system(Step::Pipes))?;
    rustix::fs::fcntl_setfl(&verdict, OFlags::NONBLOCK)
        .map_err(rustix::io::Errno::raw_os_error)
        .map_err(system(Step::Pipes))?;
    // Prepared before the fork, because the kernel must copy every page of memory that the child writes to.
    let words = ExecArguments::new(environment, mark, start)?;
    let supervisor = rustix::process::getpid();
    let forked = system::fork()
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))
        .map_err(system(Step::Fork))?;
    match forked {
        Fork::Parent(pid) => Ok((pid, Executing { verdict, bytes: Vec::new() })),
        Fork::Child => {
            let program = Child { supervisor, start, group, descriptors };
            let Err(error) = program.become_program(&words, &ends, &error_pipe);
            // The write fails only if the supervisor is gone.
            let _ = rustix::io::write(&error_pipe, &message::encode_error(&error));
            system::exit(127)
        }
    }
}

/// The arguments of execve, in its format.
struct ExecArguments {
    /// The paths of the file, in the order in which they are tried.
    files: Vec<CString>,
    /// The searched `PATH`, if the name of the program contains no slash.
    path: Option<Vec<u8>>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl ExecArguments {
    fn new(environment: &Environment, mark: &str, start: &Start) -> Result<Self, StartError> {
        let mut variables = environment.of(start, mark);
        if start.stdbuf {
            unbuffer(&mut variables)?;
        }
        let program = start.program.as_slice();
        let found = variables.iter().find(|(name, _)| name == b"PATH");
        let path = found.map_or(PATH_DEFAULT, |(_, value)| &value[..]).to_vec();
        let is_named = !program.contains(&b'/');
        let files = match is_named {
            false => vec![c_string(program)?],
            true => path
                .split(|&byte| byte == b':')
                .filter(|_| !program.is_empty())
                .map(|directory| match directory {
                    // An empty element means the working directory.
                    [] => c_string(&[b"./", program].concat()),
                    directory => c_string(&[directory, b"/", program].concat()),
                })
                .collect::<Result<_, _>>()?,
        };
        let arguments = [&start.program].into_iter().chain(&start.arguments);
        let variables = variables.iter();
        Ok(Self {
            files,
            path: is_named.then_some(path),
            arguments: arguments.map(|bytes| c_string(bytes)).collect::<Result<_, _>>()?,
            environment: variables
                .map(|(name, value)| c_string(&[name, b"=".as_slice(), value].concat()))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl ExecArguments {
    /// Returns the environment with additional variables that are available only in the child.
    fn with(&self, known: &[(&str, String)]) -> Result<Vec<CString>, StartError> {
        let mut variables = self.environment.clone();
        for (name, value) in known {
            let variable = c_string(format!("{name}={value}").as_bytes())?;
            let is_it = |it: &CString| {
                it.to_bytes()
                    .strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"="))
            };
            match variables.iter().position(is_it) {
                Some(place) => variables[place] = variable,
                None => variables.push(variable),
            }
        }
        Ok(variables)
    }
}

/// The data that the child needs.
struct Child<'a> {
    supervisor: Pid,
    start: &'a Start,
    group: Option<&'a Group>,
    /// The soft limit of descriptors with which the daemon was started.
    descriptors: Option<u64>,
}

impl Child<'_> {
    fn become_program(
        &self,
        words: &ExecArguments,
        ends: &ProgramDescriptors,
        error_pipe: &OwnedFd,
    ) -> Result<Infallible, StartError> {
        let start = self.start;
        self.die_with_supervisor()?;
        // Cannot fail: a process that was just forked is not the leader of a group.
        let _ = rustix::process::setsid();
        self.wire(ends).map_err(|error| StartError::System {
            step: Step::Pipes,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })?;
        // Closes all descriptors of the supervisor now, not only on execve: a child that blocks before execve, for
        // example in an unreachable file system, must not keep the socket of the daemon or the pipe of another program
        // open.
        let error_pipe = error_pipe.as_raw_fd();
        let own = if start.three_four { 5 } else { 3 + i32::from(start.serves) };
        for (first, last) in [(own, error_pipe - 1), (error_pipe + 1, i32::MAX)] {
            system::close_range(first, last).map_err(|error| StartError::Bounds {
                doing: "close the daemon's descriptors".to_owned(),
                errno: error.raw_os_error().unwrap_or(libc::EIO),
            })?;
        }

        let account = confine::confine(&start.bounds, self.group, self.descriptors)?;
        // Repeated, because the kernel clears the parent-death signal when a process changes its user.
        self.die_with_supervisor()?;
        if let Some(directory) = &start.cwd {
            rustix::process::chdir(directory.as_slice()).map_err(|errno| {
                let directory = text(directory);
                StartError::WorkingDirectory { directory, errno: errno.raw_os_error() }
            })?;
        }
        system::reset_ignored_signals(&IGNORED);
        let mut known = Vec::new();
        if start.serves {
            // This variable shows the program that the socket is for it.
            known.push(("LISTEN_PID", std::process::id().to_string()));
        }
        if let Some(Account { name, home }) = account
            && !start.env_clear
        {
            let given = |name: &str| start.env.iter().any(|(it, _)| it == name.as_bytes());
            let all = [("HOME", home), ("USER", name.clone()), ("LOGNAME", name)];
            known.extend(all.into_iter().filter(|(name, _)| !given(name)));
        }
        execute(&start.program, words, &words.with(&known)?)
    }

    /// Requests that the kernel kill the program when the supervisor ends. If the supervisor ended before this request,
    /// the signal would not be sent, so this case is an error here.
    fn die_with_supervisor(&self) -> Result<(), StartError> {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        let orphaned = rustix::process::getppid() != Some(self.supervisor);
        if orphaned { Err(StartError::SupervisorLost) } else { Ok(()) }
    }

    /// Moves `ends` to their descriptor numbers. Descriptors 3 and 4 are open in the supervisor, so the received
    /// descriptors have higher numbers.
    fn wire(&self, ends: &ProgramDescriptors) -> io::Result<()> {
        let [input, output, error] = &ends.pipes;
        if self.start.three_four {
            let null = fs::File::open("/dev/null")?;
            rustix::stdio::dup2_stdin(&null)?;
            rustix::stdio::dup2_stdout(error)?;
            system::duplicate_to(input, 3)?;
            system::duplicate_to(output, 4)?;
        } else {
            rustix::stdio::dup2_stdin(input)?;
            rustix::stdio::dup2_stdout(output)?;
            if let Some(socket) = &ends.socket {
                system::duplicate_to(socket, 3)?;
            }
        }
        Ok(rustix::stdio::dup2_stderr(error)?)
    }
}

/// The paths at which coreutils installs the library of `stdbuf`.
const STDBUF: &[&str] = &[
    "/usr/libexec/coreutils/libstdbuf.so",
    "/usr/lib/coreutils/libstdbuf.so",
    "/usr/lib64/coreutils/libstdbuf.so",
    "/usr/local/libexec/coreutils/libstdbuf.so",
];

/// Makes the C library flush standard output after every line, as `stdbuf -oL` does. The program `stdbuf` is not used,
/// so errors of the program itself are still reported by the start.
fn unbuffer(variables: &mut Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), StartError> {
    let library = STDBUF.iter().find(|file| Path::new(file).exists());
    let mut preload = library.ok_or(StartError::NoStdbuf)?.as_bytes().to_vec();
    let others = variables.iter().position(|(name, _)| name == b"LD_PRELOAD");
    if let Some(others) = others {
        preload = [&variables.swap_remove(others).1, b":".as_slice(), &preload].concat();
    }
    variables.push((b"LD_PRELOAD".to_vec(), preload));
    variables.push((b"_STDBUF_O".to_vec(), b"L".to_vec()));
    Ok(())
}

/// Executes the program if it is a path, otherwise the first executable file with that name in `PATH`.
fn execute(
    program: &[u8],
    words: &ExecArguments,
    environment: &[CString],
) -> Result<Infallible, StartError> {
    let ExecArguments { files, path, arguments, environment: _ } = words;
    // As execvp(3): a file without execute permission is skipped and remembered.
    let mut passed_over = None;
    for file in files {
        let Err(errno) = system::execute(file, arguments, environment);
        match explain(file.to_bytes(), errno) {
            Some(error) if path.is_none() => return Err(error),
            None | Some(StartError::Directory { .. }) => {}
            Some(error @ StartError::NotExecutable { .. }) => {
                passed_over.get_or_insert(error);
            }
            Some(error) => return Err(error),
        }
    }
    let path = path.as_deref().map(text);
    Err(passed_over.unwrap_or_else(|| StartError::NotFound { program: text(program), path }))
}

/// Returns the reason why `file` could not be executed; `None` if the file does not exist.
fn explain(file: &[u8], errno: i32) -> Option<StartError> {
    let at = Path::new(std::ffi::OsStr::from_bytes(file));
    match errno {
        // If the file exists, the error refers to its interpreter.
        libc::ENOENT => fs::metadata(at).is_ok().then(|| StartError::NoInterpreter {
            file: text(file),
            interpreter: interpreter(at).unwrap_or_default(),
        }),
        libc::ENOTDIR => None,
        libc::EACCES | libc::EPERM => Some(match fs::metadata(at) {
            Ok(found) if found.is_dir() => StartError::Directory { file: text(file) },
            _ => StartError::NotExecutable { file: text(file) },
        }),
        libc::ENOEXEC => Some(StartError::NotAProgram { file: text(file) }),
        libc::E2BIG => Some(StartError::TooLong { bytes: 0 }),
        errno => Some(StartError::System { step: Step::Execute, errno }),
    }
}

/// Returns the interpreter in the first line of a script.
fn interpreter(file: &Path) -> Option<String> {
    let mut line = Vec::new();
    // The kernel reads at most 256 bytes of the line.
    BufReader::new(fs::File::open(file).ok()?.take(256)).read_until(b'\n', &mut line).ok()?;
    let line = line.strip_prefix(b"#!")?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace() && *byte != b'\r');
    // A carriage return at the end, from a file written on Windows, is shown in escaped form.
    words.find(|word| !word.is_empty()).map(|word| word.escape_ascii().to_string())
}

fn c_string(bytes: &[u8]) -> Result<CString, StartError> {
    CString::new(bytes).map_err(|_| StartError::Nul)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_replace_those_of_the_same_name_and_the_last_counts() {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let base = Environment(vec![pair("A", "1"), pair(START_MARK, "outer"), pair("B", "2")]);
        let start = |env, env_clear, withheld: &[&str]| Start {
            env,
            env_clear,
            withheld: withheld.iter().map(|name| name.as_bytes().to_vec()).collect(),
            ..Start::default()
        };
        let added = || vec![pair("B", "3"), pair("C", "4"), pair("B", "5")];
        let all = base.of(&start(added(), false, &[]), "7.1");
        let expected = [pair(START_MARK, "7.1"), pair("A", "1"), pair("B", "5"), pair("C", "4")];
        assert_eq!(all, expected);
        let alone = base.of(&start(vec![pair("C", "4")], true, &[]), "7.2");
        assert_eq!(alone, [pair(START_MARK, "7.2"), pair("C", "4")]);
        let less = base.of(&start(Vec::new(), false, &["A", "AB", ""]), "7.3");
        assert_eq!(less, [pair(START_MARK, "7.3"), pair("B", "2")]);
        let given = base.of(&start(vec![pair("A", "9")], false, &["A"]), "7.4");
        assert_eq!(given, [pair(START_MARK, "7.4"), pair("B", "2"), pair("A", "9")]);
    }

    #[test]
    fn unbuffering_keeps_what_was_to_be_loaded_already() {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let mut variables = vec![pair("LD_PRELOAD", "libmine.so")];
        unbuffer(&mut variables).unwrap();
        let (_, preload) = variables.iter().find(|(name, _)| name == b"LD_PRELOAD").unwrap();
        let preload = text(preload);
        assert!(preload.starts_with("libmine.so:/usr/") && preload.ends_with("/libstdbuf.so"));
        assert!(variables.contains(&pair("_STDBUF_O", "L")));
    }

    #[test]
    fn an_interpreter_is_the_first_word_after_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        let read = |first: &[u8]| {
            fs::write(&file, first).unwrap();
            interpreter(&file)
        };
        assert_eq!(read(b"#! /usr/bin/env perl\n").as_deref(), Some("/usr/bin/env"));
        assert_eq!(read(b"#!/bin/sh").as_deref(), Some("/bin/sh"));
        assert_eq!(read(b"#!/bin/sh\r\n").as_deref(), Some("/bin/sh\\r"));
        assert_eq!(read(b"#!\n"), None);
        assert_eq!(read(b"\x7fELF"), None);
    }
}
