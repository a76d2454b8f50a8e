//! The daemon's side: a thread between the callers and the supervisor.
//!
//! What it is: [`Spawner`], its inbox and its thread. What it depends on: the messages of the supervisor. What it
//! holds: the daemon's ends of the pipes of each start in progress. What it must never depend on: the purpose of a
//! program.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::channel::Received;
use crate::command::{Command, Report, Spawn, Stop};
use crate::error::{SpawnError, StartError, Step};
use crate::exit::Exit;
use crate::launch::Supervisor;
use crate::limits::SUPERVISOR_START_MAX;
use crate::message::{Notice, Order, Start};
use crate::port_owner::{PortOwner, PortProgram};
use crate::program_socket::{ProgramSocket, ProgramSockets, SocketKind};
use crate::wiring::{self, DescriptorNumbers, Pipes, Unbuffer};

/// The first delay before a retry if a supervisor cannot be started. It is doubled after each failure.
const RETRY_MIN: Duration = Duration::from_millis(50);

/// The maximum delay.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// How long a supervisor may leave an order unanswered before it is pinged, and how long it may leave the ping
/// unanswered before it is killed. A program that takes long to start does not cause this, because the supervisor
/// answers the ping meanwhile.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Starts and stops programs through its own supervisor.
///
/// Dropping a spawner ends its programs in the background: their input ends when the owner closes the pipes; one second
/// later they receive SIGTERM, and after another second SIGKILL.
pub struct Spawner {
    inbox: Arc<Inbox>,
    supervisor: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
    program_sockets: ProgramSockets,
    memory: Arc<Mutex<Memory>>,
}

/// The memory that programs used at their last measurement, in bytes, by process.
type Memory = BTreeMap<u32, u64>;

impl Spawner {
    /// Creates a spawner. The first one uses the supervisor that [`init`](crate::init) started; every further one
    /// starts another supervisor.
    ///
    /// `report` is called on the thread of the spawner. It must neither block nor panic.
    ///
    /// # Errors
    /// `init` was not called, or the system cannot create a process, a thread or a descriptor.
    pub fn new(report: Box<dyn Fn(Report) + Send>) -> Result<Self, SpawnError> {
        let supervisor = Supervisor::obtain()?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(SpawnError::kernel("make the spawner's wake-up descriptor"))?;
        let inbox = Arc::new(Inbox { requests: Mutex::default(), wake });
        let pid = Arc::new(AtomicU32::new(supervisor.pid));
        let memory = Arc::<Mutex<Memory>>::default();
        let spawner_thread = SpawnerThread {
            inbox: Arc::clone(&inbox),
            pid: Arc::clone(&pid),
            supervisor: Some(supervisor),
            report,
            programs: BTreeMap::new(),
            memory: Arc::clone(&memory),
            retry: RETRY_MIN,
            retry_at: None,
            silence: Silence::None,
        };
        let thread = std::thread::Builder::new()
            .name("spawner".into())
            .spawn(|| spawner_thread.run())
            .map_err(SpawnError::system("start the spawner's thread"))?;
        Ok(Self {
            inbox,
            supervisor: pid,
            thread: Some(thread),
            program_sockets: ProgramSockets::default(),
            memory,
        })
    }

    /// Returns the process id of the supervisor; `None` while it is lost.
    #[must_use]
    pub fn supervisor_pid(&self) -> Option<u32> {
        Some(self.supervisor.load(Ordering::Relaxed)).filter(|&pid| pid != 0)
    }

    /// Ends all programs as dropping does, and waits until none of them and none of their descendants is left, which
    /// takes at most three seconds. Nothing is reported any more.
    pub fn finish(mut self) {
        self.inbox.put(Request::Finish);
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself. If it panicked, the panic message was already printed.
            let _ = thread.join();
        }
    }
}

impl Spawn for Spawner {
    fn start(&mut self, token: u64, command: Command) {
        self.inbox.put(Request::Start(token, Box::new(command)));
    }

    fn stop(&mut self, token: u64, how: Stop) {
        self.inbox.put(Request::Stop(token, how));
    }

    fn program_socket(&mut self, how: SocketKind) -> io::Result<ProgramSocket> {
        self.program_sockets.make(how)
    }

    fn port_owner(&self, program: &mut PortProgram, own: SocketAddr) -> PortOwner {
        program.owner_of(own)
    }

    fn resident(&self, pid: u32) -> Option<u64> {
        self.inbox.put(Request::Measure(pid));
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(&pid).copied()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.inbox.put(Request::Finish);
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Spawner")
            .field("supervisor_pid", &self.supervisor_pid())
            .finish_non_exhaustive()
    }
}

enum Request {
    Start(u64, Box<Command>),
    Stop(u64, Stop),
    Measure(u32),
    Finish,
}

struct Inbox {
    requests: Mutex<Vec<Request>>,
    /// Readable while there are requests.
    wake: OwnedFd,
}

impl Inbox {
    fn put(&self, request: Request) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        // Fails only after 2^64 unread wake-ups, and then the thread is awake anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<Request> {
        // The descriptor is read before the requests: a request added in between only causes one extra wake-up.
        let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
        mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A start that was sent to the supervisor, until the program has ended.
enum Program {
    Starting(Pipes),
    Running { pid: u32 },
}

/// The state of the thread.
struct SpawnerThread {
    inbox: Arc<Inbox>,
    pid: Arc<AtomicU32>,
    /// `None` while the supervisor is lost and cannot be replaced yet.
    supervisor: Option<Supervisor>,
    report: Box<dyn Fn(Report) + Send>,
    programs: BTreeMap<u64, Program>,
    memory: Arc<Mutex<Memory>>,
    retry: Duration,
    retry_at: Option<Instant>,
    silence: Silence,
}

/// Whether the supervisor owes an answer.
#[derive(Clone, Copy)]
enum Silence {
    /// No answer is expected.
    None,
    /// An order was sent at this time.
    AwaitsReply(Instant),
    /// A ping was sent at this time.
    Pinged(Instant),
}

impl SpawnerThread {
    fn run(mut self) {
        loop {
            self.wait();
            for request in self.inbox.take() {
                match request {
                    Request::Start(token, command) => self.start(token, *command),
                    Request::Stop(token, how) => self.stop(token, how),
                    Request::Measure(pid) => self.measure(pid),
                    Request::Finish => return self.finish(),
                }
            }
            if self.supervisor.is_some() {
                self.receive_notices();
                self.check_silence();
            } else if self.retry_at.is_none_or(|at| at <= Instant::now()) {
                self.replace();
            }
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.inbox.wake, PollFlags::IN)];
        if let Some(supervisor) = &self.supervisor {
            let mut interest = PollFlags::IN;
            interest.set(PollFlags::OUT, supervisor.channel.has_queued());
            fds.push(PollFd::from_borrowed_fd(supervisor.channel.as_fd(), interest));
        }
        let asked_at = match self.silence {
            Silence::None => None,
            Silence::AwaitsReply(since) | Silence::Pinged(since) => Some(since + SILENCE_MAX),
        };
        let limit = [self.retry_at, asked_at].into_iter().flatten().min().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec::try_from(left).expect("both waits are seconds")
        });
        // If interrupted, this iteration finds no events and the next one waits again.
        let _ = poll(&mut fds, limit.as_ref());
    }

    fn start(&mut self, token: u64, command: Command) {
        if let Err(error) = self.try_start(token, command) {
            (self.report)(Report::StartFailed { token, error });
        }
    }

    fn try_start(&mut self, token: u64, command: Command) -> Result<(), StartError> {
        let supervisor = self.supervisor.as_mut().ok_or(StartError::SupervisorLost)?;
        if self.programs.contains_key(&token) {
            return Err(StartError::TokenInUse);
        }
        let (wiring, socket) = (command.wiring, command.socket.clone());
        let order = Order::Start { token, start: Box::new(checked(command)?) };
        let bytes = order.encode();
        if bytes.len() > crate::COMMAND_BYTES_MAX {
            return Err(StartError::TooLong { bytes: bytes.len() });
        }
        let no_pipes = |errno| StartError::System { step: Step::Pipes, errno };
        let (pipes, mut theirs) =
            wiring::make(wiring).map_err(|errno| no_pipes(errno.raw_os_error()))?;
        if let Some(socket) = socket {
            let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::EMFILE);
            theirs.push(socket.duplicate().map_err(|error| no_pipes(errno(error)))?);
        }
        supervisor.channel.send(bytes, theirs);
        self.silence.order_sent();
        self.programs.insert(token, Program::Starting(pipes));
        Ok(())
    }

    fn stop(&mut self, token: u64, how: Stop) {
        if let Some(supervisor) = &mut self.supervisor
            && self.programs.contains_key(&token)
        {
            supervisor.channel.send(Order::Stop { token, how }.encode(), Vec::new());
            self.silence.order_sent();
        }
    }

    /// Measures the memory of a program. Looking up its files may have to wait for another user.
    fn measure(&self, pid: u32) {
        let is_running =
            |program: &Program| matches!(program, Program::Running { pid: own } if *own == pid);
        if self.programs.values().any(is_running)
            && let Some(bytes) = crate::resident(pid)
        {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, bytes);
        }
    }

    /// Removes a program that has ended.
    fn remove(&mut self, token: u64) {
        if let Some(Program::Running { pid }) = self.programs.remove(&token) {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        }
    }

    /// Pings a supervisor that does not answer, and kills it if the ping is not answered: a stopped supervisor can
    /// neither stop programs nor start others, so it is replaced like a lost one.
    fn check_silence(&mut self) {
        let now = Instant::now();
        let Some(supervisor) = &mut self.supervisor else { return };
        match self.silence {
            Silence::AwaitsReply(since) if now >= since + SILENCE_MAX => {
                supervisor.channel.send(Order::Ping.encode(), Vec::new());
                self.silence = Silence::Pinged(now);
            }
            Silence::Pinged(since) if now >= since + SILENCE_MAX => {
                tracing::error!(
                    supervisor = supervisor.pid,
                    "the supervisor does not answer and is killed"
                );
                supervisor.kill();
                self.silence = Silence::None;
            }
            _ => {}
        }
    }

    /// Reads the messages of the supervisor.
    fn receive_notices(&mut self) {
        while let Some(supervisor) = &mut self.supervisor {
            supervisor.channel.flush();
            match supervisor.channel.receive() {
                Received::Nothing => return,
                Received::End => self.lose(),
                Received::Packet(bytes, _) => match Notice::decode(bytes) {
                    Some(notice) => {
                        self.silence = Silence::None;
                        self.handle_notice(notice);
                    }
                    None => {
                        tracing::error!("the supervisor sent an unknown message; it is replaced");
                        self.lose();
                    }
                },
            }
        }
    }

    fn handle_notice(&mut self, notice: Notice) {
        let report = match notice {
            Notice::Hello { .. } | Notice::Pong => return,
            Notice::Started { token, pid } => {
                match self.programs.insert(token, Program::Running { pid }) {
                    Some(Program::Starting(pipes)) => Report::Started { token, pid, pipes },
                    Some(Program::Running { .. }) | None => {
                        unreachable!("the supervisor answers a start once, and no token but ours")
                    }
                }
            }
            Notice::StartFailed { token, error } => {
                self.programs.remove(&token);
                Report::StartFailed { token, error }
            }
            Notice::Exited { token, exit } => {
                self.remove(token);
                Report::Exited { token, exit }
            }
        };
        (self.report)(report);
    }

    /// Handles the loss of the supervisor: waits until all its processes have ended, reports the loss, and replaces it.
    fn lose(&mut self) {
        let Some(supervisor) = self.supervisor.take() else { return };
        self.silence = Silence::None;
        self.pid.store(0, Ordering::Relaxed);
        tracing::warn!(
            supervisor = supervisor.pid,
            "the supervisor is lost; its programs are replaced"
        );
        (self.report)(Report::SupervisorLost);
        if !supervisor.end(SUPERVISOR_START_MAX) {
            tracing::error!("some programs of the lost supervisor could not be ended");
        }
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for (token, program) in mem::take(&mut self.programs) {
            (self.report)(match program {
                Program::Running { .. } => Report::Exited { token, exit: Exit::LOST },
                Program::Starting(_) => {
                    Report::StartFailed { token, error: StartError::SupervisorLost }
                }
            });
        }
        self.replace();
    }

    fn replace(&mut self) {
        match Supervisor::obtain() {
            Ok(supervisor) => {
                tracing::info!(supervisor = supervisor.pid, "a new supervisor has started");
                self.pid.store(supervisor.pid, Ordering::Relaxed);
                self.supervisor = Some(supervisor);
                (self.retry, self.retry_at) = (RETRY_MIN, None);
                (self.report)(Report::SupervisorReplaced);
            }
            Err(error) => {
                tracing::error!(%error, retry = ?self.retry, "no new supervisor could be started");
                self.retry_at = Some(Instant::now() + self.retry);
                self.retry = (self.retry * 2).min(RETRY_MAX);
            }
        }
    }

    fn finish(mut self) {
        // The ends of pipes that were not reported yet are closed, so that the input of these programs ends.
        self.programs.clear();
        self.pid.store(0, Ordering::Relaxed);
        if let Some(supervisor) = self.supervisor.take()
            && !supervisor.end(SUPERVISOR_START_MAX)
        {
            tracing::error!("not all programs could be ended");
        }
    }
}

impl Silence {
    /// An order was sent. Only the first unanswered order sets the time.
    fn order_sent(&mut self) {
        if matches!(self, Self::None) {
            *self = Self::AwaitsReply(Instant::now());
        }
    }
}

/// Converts a command to the form for the supervisor. Rejects NUL bytes.
fn checked(command: Command) -> Result<Start, StartError> {
    let Command { program, arguments, cwd, env, env_clear, name, wiring, socket, bounds } = command;
    let name = ("ROADSTEAD_WORKER".to_owned(), name);
    // Only the process itself can set its process id, so the child replaces this 0.
    let told = [("LISTEN_FDS", "1"), ("LISTEN_PID", "0"), ("LISTEN_FDNAMES", "http")];
    let told = told.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let told = told.into_iter().filter(|_| socket.is_some());
    let start = Start {
        program: program.into_bytes(),
        arguments: arguments.into_iter().map(String::into_bytes).collect(),
        cwd: cwd.map(|cwd| cwd.as_os_str().as_bytes().to_vec()),
        env: env
            .into_iter()
            .chain([name])
            .chain(told)
            .map(|(name, value)| (name.into_bytes(), value.into_bytes()))
            .collect(),
        env_clear,
        withheld: crate::withheld::names(),
        three_four: wiring.numbers == DescriptorNumbers::ThreeFour,
        stdbuf: wiring.unbuffer == Unbuffer::Stdbuf,
        serves: socket.is_some(),
        bounds,
    };
    let texts = [&start.program].into_iter().chain(&start.arguments).chain(&start.cwd);
    let variables = start.env.iter().flat_map(|(name, value)| [name, value]).chain(&start.withheld);
    let has_nul = texts.chain(variables).any(|bytes| bytes.contains(&0));
    if has_nul { Err(StartError::Nul) } else { Ok(start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_init_no_second_copy_of_this_program_is_started() {
        let refused = Spawner::new(Box::new(drop)).map(drop);
        assert!(matches!(refused, Err(SpawnError::NotInitialised)), "{refused:?}");
    }
}
