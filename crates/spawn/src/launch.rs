//! Starts the supervisor: by [`init`] at the top of `main`, and again whenever a supervisor is lost.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit};

use crate::channel::{Channel, Received};
use crate::error::SpawnError;
use crate::limits::SUPERVISOR_START_MAX;
use crate::message::{Notice, Order};

/// The first argument (`argv[0]`) of the supervisor, by which [`init`] recognises it. Process lists show it.
pub const SUPERVISOR: &str = "roadstead-supervisor";

/// How long a program may run after the daemon has ended and its input was closed, before SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long a program may run after SIGTERM, before SIGKILL.
const TERM: Duration = Duration::from_secs(1);

/// The soft limit of descriptors with which this process was started. Set once by [`init`].
static DESCRIPTORS: OnceLock<Option<u64>> = OnceLock::new();

/// The supervisor that [`init`] started, until a spawner takes it.
static FIRST: Mutex<Option<Supervisor>> = Mutex::new(None);

/// A running supervisor, from the side of the daemon.
pub(crate) struct Supervisor {
    pub(crate) channel: Channel,
    pub(crate) pid: u32,
    /// A descriptor of its process, so that a kill cannot reach another process with the same id.
    process: OwnedFd,
    watchdog: Child,
    /// Readable after the watchdog has ended, even if another part of this process reaps it: an embedder that ignores
    /// SIGCHLD or waits for any child takes the exit status.
    watchdog_ended: OwnedFd,
}

/// Prepares this process for starting programs. Call it at the top of `main`, before any thread starts. Further calls
/// do nothing.
///
/// In the supervisor (a process started from this executable) it never returns. In every other process it starts the
/// supervisor, ignores SIGXFSZ, and raises the soft limit of descriptors to the hard limit. Programs get the default
/// action of SIGXFSZ and the original limit.
///
/// # Errors
/// Other threads are running, or the supervisor cannot be started.
pub fn init() -> Result<(), SpawnError> {
    if std::env::args_os().next().is_some_and(|first| first == SUPERVISOR) {
        crate::supervisor::run();
    }
    if DESCRIPTORS.get().is_some() {
        return Ok(());
    }
    let threads =
        crate::system::threads().map_err(SpawnError::system("count threads in /proc/self/task"))?;
    if threads > 1 {
        return Err(SpawnError::ThreadsRunning { threads });
    }
    // With SIGXFSZ ignored, a write to a file that has reached its limit (RLIMIT_FSIZE) fails with an error. Programs
    // get the default action.
    crate::system::ignore(libc::SIGXFSZ);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let supervisor = Supervisor::launch(limit.current)?;
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised)
        .map_err(SpawnError::kernel("raise the limit of descriptors"))?;
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(supervisor);
    DESCRIPTORS.get_or_init(|| limit.current);
    Ok(())
}

impl Supervisor {
    /// Returns the supervisor that [`init`] started, or starts a new one.
    pub(crate) fn obtain() -> Result<Self, SpawnError> {
        // Without `init`, the new process of this executable would not run as a supervisor.
        let descriptors = *DESCRIPTORS.get().ok_or(SpawnError::NotInitialised)?;
        match FIRST.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(supervisor) => Ok(supervisor),
            None => Self::launch(descriptors),
        }
    }

    fn launch(descriptors: Option<u64>) -> Result<Self, SpawnError> {
        let (mut channel, theirs) =
            Channel::pair().map_err(SpawnError::kernel("make the supervisor's socket"))?;
        // The socket is passed as standard input. So no descriptor must be made inheritable, not even briefly, in a
        // process that may start other programs at the same time. `/proc/self/exe` refers to the executable of this
        // process, even if its file was replaced or removed since.
        let mut watchdog = Command::new("/proc/self/exe")
            .arg0(SUPERVISOR)
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(SpawnError::system("start the supervisor from /proc/self/exe"))?;
        let hello = Order::Hello { grace: GRACE, term: TERM, descriptors };
        channel.send(hello.encode(), Vec::new());
        let watchdog_pid = Pid::from_raw(watchdog.id().cast_signed()).expect("a process id");
        let pidfd = rustix::process::pidfd_open(watchdog_pid, PidfdFlags::empty())
            .map_err(SpawnError::kernel("watch the supervisor"));
        let supervisor =
            greeting(&mut channel).ok_or(SpawnError::SupervisorSilent).and_then(|pid| {
                let raw = Pid::from_raw(pid.cast_signed()).expect("a process id");
                rustix::process::pidfd_open(raw, PidfdFlags::empty())
                    .map(|process| (pid, process))
                    .map_err(SpawnError::kernel("watch the supervisor"))
            });
        match pidfd.and_then(|watchdog_ended| Ok((watchdog_ended, supervisor?))) {
            Ok((watchdog_ended, (pid, process))) => {
                Ok(Self { channel, pid, process, watchdog, watchdog_ended })
            }
            Err(error) => {
                drop(channel);
                // No program was started yet. After the kill the wait returns soon.
                let _ = watchdog.kill();
                let _ = watchdog.wait();
                Err(error)
            }
        }
    }

    /// Kills a supervisor that does not respond. Its watchdog then ends all programs, and the channel closes.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.process, rustix::process::Signal::KILL);
    }

    /// Closes the channel and waits until the watchdog has ended. No process that this supervisor started is left then.
    /// Returns false if that takes longer than `limit`.
    pub(crate) fn end(self, limit: Duration) -> bool {
        let Self { channel, mut watchdog, watchdog_ended, .. } = self;
        drop(channel);
        let wait =
            || wait_readable(&PollFd::new(&watchdog_ended, PollFlags::IN), Instant::now() + limit);
        let ended = wait();
        if !ended {
            // The watchdog is stopped or blocked in the kernel. When it is gone, the supervisor, if it runs, ends
            // everything.
            let _ = watchdog.kill();
            wait();
        }
        // Reaps the watchdog.
        let _ = watchdog.try_wait();
        ended
    }
}

/// Returns the process id of the supervisor, after it has reported.
fn greeting(channel: &mut Channel) -> Option<u32> {
    let until = Instant::now() + SUPERVISOR_START_MAX;
    loop {
        match channel.receive() {
            Received::Packet(bytes, _) => match Notice::decode(bytes) {
                Some(Notice::Hello { pid }) => return Some(pid),
                _ => return None,
            },
            Received::End => return None,
            Received::Nothing => {}
        }
        if !wait_readable(&PollFd::new(channel, PollFlags::IN), until) {
            return None;
        }
    }
}

/// Waits until a descriptor is readable. Returns false when `until` has passed.
fn wait_readable(fd: &PollFd<'_>, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).expect("the waits of this room are seconds");
        match poll(&mut [fd.clone()], Some(&limit)) {
            Ok(0) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}
