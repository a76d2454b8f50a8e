//! Reads the files of a process that can block the reader.
//!
//! What it is: a child process of the supervisor that reads `/proc/PID/stat` and `/proc/PID/environ`, and the
//! supervisor's side of it. What it depends on: a socket pair and `/proc`. What it must never depend on: programs, rules.
//!
//! Both files wait for a lock that a process holds while it executes another program (`exec_update_lock`). During execve
//! the kernel closes descriptors, and a descriptor in a FUSE file system is closed only when its server permits, so a
//! process can hold the lock for any time. `environ` also waits for the memory that it shows, which can be a file of such
//! a file system. Only a signal that kills the reader ends these waits. All other files of `/proc` that the supervisor
//! reads (`status`, `children`, `task`) wait for neither.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;

use super::child::START_MARK;
use super::family;
use crate::process;
use crate::system::{self, Fork};

/// The maximum number of bytes that are read of an environment. A process may set the range of memory that its
/// environment file shows (PR_SET_MM_MAP), so this file can have many gigabytes. An honest environment is not much longer
/// than [`COMMAND_BYTES_MAX`](crate::COMMAND_BYTES_MAX).
const ENVIRONMENT_BYTES_MAX: u64 = 256 * 1024;

/// The maximum length of a mark: a process id, a point and the number of a start.
const MARK_BYTES_MAX: usize = 32;

/// The maximum number of threads whose environment is read. If the first thread of a process has ended, only the files
/// of the others show the environment.
const THREADS_MAX: usize = 16;

/// An answer: the start time, and the mark. Longer answers do not occur.
const ANSWER_BYTES_MAX: usize = 8 + MARK_BYTES_MAX;

/// What the files of a process contain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Facts {
    /// In clock ticks since boot.
    pub(super) started: u64,
    /// The value of [`START_MARK`] in its environment.
    pub(super) mark: Option<String>,
}

/// The result of [`Reader::ask`].
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Answer {
    Facts(Facts),
    /// There is no such process.
    Gone,
    /// No answer in time. The reader was killed.
    Blocked,
    /// No reader can be started now.
    NoReader,
}

/// The reader process. At most one runs.
pub(super) struct Reader {
    running: Option<(i32, OwnedFd)>,
    /// Killed readers that are not reaped yet.
    killed: Vec<i32>,
    start: fn() -> io::Result<(i32, OwnedFd)>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { running: None, killed: Vec::new(), start: fork_reader }
    }

    /// Starts the process if it does not run. Returns whether it runs.
    pub(super) fn ensure(&mut self) -> bool {
        if self.running.is_none() {
            self.running = (self.start)().ok();
        }
        self.running.is_some()
    }

    /// Whether this child of the supervisor is a reader.
    pub(super) fn is(&self, pid: i32) -> bool {
        self.killed.contains(&pid) || self.running.as_ref().is_some_and(|(it, _)| *it == pid)
    }

    /// A child was reaped. Returns whether it was a reader.
    pub(super) fn was_reaped(&mut self, pid: i32) -> bool {
        let is_reader = self.is(pid);
        self.killed.retain(|&it| it != pid);
        self.running.take_if(|(it, _)| *it == pid);
        is_reader
    }

    /// Kills the process. It is reaped like every other child.
    pub(super) fn kill(&mut self) {
        if let Some((pid, _)) = self.running.take() {
            family::signal(pid, Signal::KILL);
            self.killed.push(pid);
        }
    }

    /// Reads the files of a process. Waits no longer than `limit`.
    pub(super) fn ask(&mut self, pid: i32, limit: Duration) -> Answer {
        if !self.ensure() {
            return Answer::NoReader;
        }
        let Some((_, socket)) = &self.running else { return Answer::NoReader };
        let answer = exchange(socket, pid, limit);
        if matches!(answer, Answer::Blocked | Answer::NoReader) {
            self.kill();
        }
        answer
    }
}

fn exchange(socket: &OwnedFd, pid: i32, limit: Duration) -> Answer {
    let until = Instant::now() + limit;
    if rustix::io::write(socket, &pid.to_ne_bytes()).is_err() {
        return Answer::NoReader;
    }
    let mut buffer = [0; ANSWER_BYTES_MAX];
    loop {
        match rustix::io::read(socket, &mut buffer) {
            Ok(0) => return Answer::NoReader,
            Ok(count) => return decode(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Answer::NoReader,
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Answer::Blocked;
        }
        if let Ok(left) = Timespec::try_from(left) {
            let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&left));
        }
    }
}

fn decode(bytes: &[u8]) -> Answer {
    let Some((started, mark)) = bytes.split_first_chunk() else { return Answer::Gone };
    let mark = (!mark.is_empty()).then(|| String::from_utf8_lossy(mark).into_owned());
    Answer::Facts(Facts { started: u64::from_ne_bytes(*started), mark })
}

fn encode(facts: Option<Facts>) -> Vec<u8> {
    // One byte: a packet without bytes is the end.
    let Some(Facts { started, mark }) = facts else { return vec![0] };
    [&started.to_ne_bytes(), mark.unwrap_or_default().as_bytes()].concat()
}

/// Returns the two ends of the socket: that of the supervisor, which never blocks, and that of the reader.
fn ends() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

fn fork_reader() -> io::Result<(i32, OwnedFd)> {
    let (ours, theirs) = ends()?;
    let supervisor = rustix::process::getpid();
    match system::fork()? {
        Fork::Parent(pid) => Ok((pid, ours)),
        Fork::Child => {
            let _ = rustix::thread::set_name(c"reader");
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let own = theirs.as_raw_fd();
            let closed =
                [(3, own - 1), (own + 1, i32::MAX)].map(|(a, b)| system::close_range(a, b).is_ok());
            if closed == [true, true] && rustix::process::getppid() == Some(supervisor) {
                serve(&theirs, read_facts);
            }
            system::exit(0)
        }
    }
}

/// Answers until the supervisor has closed its end.
fn serve(socket: &OwnedFd, read: impl Fn(i32) -> Option<Facts>) {
    let mut pid = [0; 4];
    loop {
        match rustix::io::read(socket, &mut pid) {
            Ok(4) => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        if rustix::io::write(socket, &encode(read(i32::from_ne_bytes(pid)))).is_err() {
            return;
        }
    }
}

fn read_facts(pid: i32) -> Option<Facts> {
    Some(Facts { started: process::started(pid)?, mark: mark(pid) })
}

/// Returns the mark in the environment of a process. A program has it at the start of its environment.
fn mark(pid: i32) -> Option<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let environments = threads.flatten().take(THREADS_MAX).map(|it| it.path().join("environ"));
    environments.filter_map(|environment| fs::File::open(environment).ok()).find_map(mark_in)
}

fn mark_in(environment: impl Read) -> Option<String> {
    let variables = BufReader::new(environment.take(ENVIRONMENT_BYTES_MAX)).split(0);
    variables.map_while(Result::ok).find_map(|variable| {
        let mark = variable.strip_prefix(START_MARK.as_bytes())?.strip_prefix(b"=")?;
        (mark.len() <= MARK_BYTES_MAX).then(|| String::from_utf8(mark.to_vec()).ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_environment_without_end_is_read_up_to_a_limit() {
        let marked = |name: &str| format!("{name}=7.1\0").into_bytes();
        let endless = |first: &[u8]| [first, b"A=B\0"].concat();
        let first = endless(&marked(START_MARK));
        assert_eq!(mark_in(first.chain(io::repeat(b'x'))).as_deref(), Some("7.1"));
        let mut rest = io::repeat(0).take(ENVIRONMENT_BYTES_MAX * 4);
        assert_eq!(mark_in(endless(&marked("OTHER")).chain(&mut rest)), None);
        // The reader of the buffer may have read a few more bytes than were used.
        assert!(rest.limit() >= ENVIRONMENT_BYTES_MAX * 3, "{} left", rest.limit());
        let long = format!("{START_MARK}={}\0", "7".repeat(MARK_BYTES_MAX + 1));
        assert_eq!(mark_in(long.as_bytes()), None);
    }

    #[test]
    fn a_read_that_blocks_ends_its_reader_and_the_next_one_answers() {
        // The processes of this test are threads, so the number of a process is one that no process has.
        fn start() -> io::Result<(i32, OwnedFd)> {
            let (ours, theirs) = ends()?;
            std::thread::spawn(move || {
                serve(&theirs, |pid| match pid {
                    1 => Some(Facts { started: 17, mark: Some("7.1".into()) }),
                    2 => Some(Facts { started: 18, mark: None }),
                    3 => None,
                    _ => loop {
                        std::thread::park();
                    },
                });
            });
            Ok((i32::MAX, ours))
        }
        let mut reader = Reader { start, ..Reader::new() };
        let long = Duration::from_secs(20);
        let marked = Answer::Facts(Facts { started: 17, mark: Some("7.1".into()) });
        assert_eq!(reader.ask(1, long), marked);
        assert_eq!(reader.ask(4, Duration::from_millis(5)), Answer::Blocked);
        assert!(reader.is(i32::MAX) && reader.running.is_none(), "it is killed and not reaped yet");
        assert_eq!(reader.ask(2, long), Answer::Facts(Facts { started: 18, mark: None }));
        assert_eq!(reader.ask(3, long), Answer::Gone);
        assert!(reader.was_reaped(i32::MAX) && !reader.was_reaped(i32::MAX));
        reader.start = || Err(io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(reader.ask(1, long), Answer::NoReader);
    }
}
