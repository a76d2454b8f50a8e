//! Starting the keeper: by [`init`] at the top of `main`, and again whenever one is lost.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit};

use crate::channel::{Channel, Received};
use crate::error::SpawnError;
use crate::limits::KEEPER_START_MAX;
use crate::message::{Notice, Order};

/// The first word of the keeper's command line, by which it knows itself, and people know it.
pub const KEEPER: &str = "roadstead-keeper";

/// How long a program may go on once the daemon is gone and its input has ended.
const GRACE: Duration = Duration::from_secs(1);

/// How long after that it may take to heed SIGTERM.
const TERM: Duration = Duration::from_secs(1);

/// The soft limit of descriptors that this process was started with; set once by [`init`].
static DESCRIPTORS: OnceLock<Option<u64>> = OnceLock::new();

/// The keeper that [`init`] started, until a spawner takes it.
static FIRST: Mutex<Option<Keeper>> = Mutex::new(None);

/// A running keeper, as the daemon sees it.
pub(crate) struct Keeper {
    pub(crate) channel: Channel,
    pub(crate) pid: u32,
    /// By which it is killed without meeting a stranger of the same number.
    process: OwnedFd,
    guard: Child,
    /// Readable once the guard has ended, whoever reaps it: an embedder that ignores SIGCHLD, or
    /// waits for any child, takes its status from us.
    guard_ended: OwnedFd,
}

/// Makes this process able to start programs. Call it at the top of `main`, before any thread;
/// more than once does no harm.
///
/// In the process that is to be the keeper (this executable, started anew) it never returns. In
/// every other it starts the keeper, ignores SIGXFSZ, and raises the soft limit of descriptors to the
/// hard one; programs get back the default and the limit there was.
///
/// # Errors
/// Threads run already, or the keeper cannot be started.
pub fn init() -> Result<(), SpawnError> {
    if std::env::args_os().next().is_some_and(|first| first == KEEPER) {
        crate::keeper::run();
    }
    if DESCRIPTORS.get().is_some() {
        return Ok(());
    }
    let threads =
        crate::system::threads().map_err(SpawnError::system("count threads in /proc/self/task"))?;
    if threads > 1 {
        return Err(SpawnError::ThreadsRunning { threads });
    }
    // A file that has reached the limit (RLIMIT_FSIZE) is an error of the write. Programs get the
    // default back.
    crate::system::ignore(libc::SIGXFSZ);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let keeper = Keeper::launch(limit.current)?;
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised)
        .map_err(SpawnError::kernel("raise the limit of descriptors"))?;
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
    DESCRIPTORS.get_or_init(|| limit.current);
    Ok(())
}

impl Keeper {
    /// The one that stands ready, or a new one.
    pub(crate) fn obtain() -> Result<Self, SpawnError> {
        // Without `init` this executable, started anew, would not know that it is a keeper.
        let descriptors = *DESCRIPTORS.get().ok_or(SpawnError::NotInitialised)?;
        match FIRST.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(keeper) => Ok(keeper),
            None => Self::launch(descriptors),
        }
    }

    fn launch(descriptors: Option<u64>) -> Result<Self, SpawnError> {
        let (mut channel, theirs) =
            Channel::pair().map_err(SpawnError::kernel("make the keeper's socket"))?;
        // The socket goes as standard input: nothing needs to be inheritable, not for a moment, in
        // a process that may start others meanwhile. The link leads to this very executable, also
        // when its file was replaced or removed since.
        let mut guard = Command::new("/proc/self/exe")
            .arg0(KEEPER)
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(SpawnError::system("start the keeper from /proc/self/exe"))?;
        let hello = Order::Hello { grace: GRACE, term: TERM, descriptors };
        channel.send(hello.encode(), Vec::new());
        let guard_pid = Pid::from_raw(guard.id().cast_signed()).expect("a process id");
        let pidfd = rustix::process::pidfd_open(guard_pid, PidfdFlags::empty())
            .map_err(SpawnError::kernel("watch the keeper"));
        let keeper = greeting(&mut channel).ok_or(SpawnError::KeeperSilent).and_then(|pid| {
            let raw = Pid::from_raw(pid.cast_signed()).expect("a process id");
            rustix::process::pidfd_open(raw, PidfdFlags::empty())
                .map(|process| (pid, process))
                .map_err(SpawnError::kernel("watch the keeper"))
        });
        match pidfd.and_then(|guard_ended| Ok((guard_ended, keeper?))) {
            Ok((guard_ended, (pid, process))) => {
                Ok(Self { channel, pid, process, guard, guard_ended })
            }
            Err(error) => {
                drop(channel);
                // It has nothing to keep yet; killed, it can be waited for.
                let _ = guard.kill();
                let _ = guard.wait();
                Err(error)
            }
        }
    }

    /// Kills a keeper that does not answer; its guard then ends all that it kept, and the channel
    /// ends.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.process, rustix::process::Signal::KILL);
    }

    /// Hangs up, and waits until the guard has ended: then nothing is left that this keeper
    /// started. False if that takes longer than `limit`.
    pub(crate) fn end(self, limit: Duration) -> bool {
        let Self { channel, mut guard, guard_ended, .. } = self;
        drop(channel);
        let wait =
            || wait_readable(&PollFd::new(&guard_ended, PollFlags::IN), Instant::now() + limit);
        let ended = wait();
        if !ended {
            // Stopped, or held by the kernel; without it the keeper, if it lives, ends everything.
            let _ = guard.kill();
            wait();
        }
        // Reaps it.
        let _ = guard.try_wait();
        ended
    }
}

/// The keeper's process id, once it has reported itself.
fn greeting(channel: &mut Channel) -> Option<u32> {
    let until = Instant::now() + KEEPER_START_MAX;
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

/// Waits for one descriptor; false when it is too late.
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
