//! The keeper: the process that is the parent of every program, and outlives the daemon to see
//! that no program does.
//!
//! What it is: a process of one thread, our own executable started anew by [`crate::init`], in two
//! halves. What it knows: one daemon's socket, its children. What it must never know: what a
//! program says; it holds no end of a program's pipe.
//!
//! ```text
//! daemon ── guard ── keeper ─┬─ program ── its children
//!    └───── socket ─────┘    ├─ program
//!                            └─ what programs left behind (the keeper is their subreaper)
//! ```
//!
//! - The daemon goes (its end of the socket closes): grace, TERM, KILL of all that is left.
//! - The keeper goes: the kernel kills the programs (their parent-death signal), all they left
//!   comes to the guard, which kills it and ends. The daemon waits for that, then starts the next
//!   pair.
//! - The guard goes: the keeper kills everything and ends; the rest is as above.
//! - Daemon and keeper go together: the guard still sees to it. All three together: programs are
//!   killed by the kernel, what escaped them is left (to the service manager's control group).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::channel::{Channel, Received};
use crate::command::Stop;
use crate::error::{StartError, Step};
use crate::message::{Notice, Order, Start};
use crate::system::{self, Fork, Wait, threads};

pub(crate) mod cgroup;
mod child;
mod complain;
mod confine;
mod family;
mod program;
mod sweep;

use cgroup::{Group, Groups};
use child::{Environment, Executing, IGNORED};
use complain::complain;
use program::{Program, State};

/// Packets read in one turn, so that a burst of starts does not keep exits waiting.
const PACKETS_MAX: usize = 16;

/// After a program's end strays are looked for at once, and again after 10, 40, 160 and 640 ms:
/// a process in the middle of execve shows no environment, and a list of children that is read
/// while others come and go may lack one.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK_LAST: Duration = Duration::from_millis(640);

/// What was said in the first message.
struct Terms {
    grace: Duration,
    term: Duration,
    descriptors: Option<u64>,
}

struct Keeper {
    channel: Channel,
    signals: OwnedFd,
    guard: Pid,
    environment: Environment,
    terms: Terms,
    programs: HashMap<i32, Program>,
    /// The process of every token that is executing or running.
    tokens: HashMap<u64, i32>,
    marks: u64,
    groups: Groups,
    /// When to look for strays once more, and how long the wait before was.
    look: Option<(Instant, Duration)>,
}

/// The whole life of the process.
pub(crate) fn run() -> ! {
    match enter() {
        Ok(mut keeper) => keeper.keep(),
        Err(error) => {
            complain(&error.to_string());
            system::exit(1)
        }
    }
}

fn enter() -> io::Result<Keeper> {
    let threads = threads()?;
    if threads > 1 {
        return Err(io::Error::other("spawn::init() must be the first thing in main"));
    }
    let socket = system::take_standard_input()?;
    if rustix::net::sockopt::socket_type(&socket).ok() != Some(rustix::net::SocketType::SEQPACKET) {
        return Err(io::Error::other("the keeper is started by the daemon, never by hand"));
    }
    // What the daemon's embedder or its service manager left open, listeners say, is not ours.
    system::close_range(3, socket.as_raw_fd() - 1)?;
    system::close_range(socket.as_raw_fd() + 1, i32::MAX)?;
    // Programs of its user must neither read its environment, where secrets are, nor trace it.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    drop(null);

    // An ignored SIGCHLD, inherited, would have the kernel reap our children.
    system::signals_as_new();
    IGNORED.iter().for_each(|signal| system::ignore(*signal));
    // It fails only for the leader of a group, which has its own already.
    let _ = rustix::process::setsid();
    let guard = rustix::process::getpid();
    match system::fork()? {
        Fork::Parent(keeper) => {
            drop(socket);
            stand_guard(keeper)
        }
        Fork::Child => prepare(Channel::new(socket), guard),
    }
}

fn stand_guard(keeper: i32) -> ! {
    let _ = rustix::thread::set_name(c"keeper-guard");
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    loop {
        match system::ended_child(true) {
            Wait::Ended(pid) => {
                system::reap(pid);
                if pid == keeper {
                    break;
                }
            }
            Wait::None => {}
            Wait::Childless => break,
        }
    }
    sweep::kill_all();
    system::exit(0)
}

fn prepare(mut channel: Channel, guard: Pid) -> io::Result<Keeper> {
    let _ = rustix::thread::set_name(c"keeper");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = system::signal_descriptor(&[libc::SIGCHLD, libc::SIGUSR1])?;
    rustix::process::set_parent_process_death_signal(Some(Signal::USR1))?;
    if rustix::process::getppid() != Some(guard) {
        return Err(io::Error::other("the guard is gone already"));
    }
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;

    poll(&mut [PollFd::new(&channel, PollFlags::IN)], None)?;
    let terms = match channel.receive() {
        Received::Packet(bytes, _) => match Order::decode(bytes) {
            Some(Order::Hello { grace, term, descriptors }) => Terms { grace, term, descriptors },
            _ => return Err(io::Error::other("the first message is not understood")),
        },
        // The daemon went as soon as it had come, and left nothing to be kept.
        Received::Nothing | Received::End => system::exit(0),
    };
    let pid = std::process::id();
    channel.send(Notice::Hello { pid }.encode(), Vec::new());
    Ok(Keeper {
        channel,
        signals,
        guard,
        environment: Environment::inherited(),
        terms,
        programs: HashMap::new(),
        tokens: HashMap::new(),
        marks: 0,
        groups: Groups::default(),
        look: None,
    })
}

impl Keeper {
    fn keep(&mut self) -> ! {
        loop {
            let executed = self.wait();
            for pid in executed {
                self.settle(pid);
            }
            self.reap();
            self.look_again();
            if rustix::process::getppid() != Some(self.guard) {
                sweep::kill_all();
                self.reap();
                self.groups.end_all();
                system::exit(0);
            }
            if !self.receive() {
                sweep::wind_up(&self.signals, self.terms.grace, self.terms.term);
                self.groups.end_all();
                system::exit(0)
            }
            self.channel.flush();
        }
    }

    /// Waits until there is something to do; the programs whose execution is decided.
    fn wait(&self) -> Vec<i32> {
        let socket = match self.channel.has_queued() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.channel.as_fd(), socket),
        ];
        let mut pids = Vec::new();
        for (pid, program) in &self.programs {
            if let State::Executing(executing) = &program.state {
                pids.push(*pid);
                fds.push(PollFd::from_borrowed_fd(executing.as_fd(), PollFlags::IN));
            }
        }
        let limit = self.look.map(|(at, _)| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec::try_from(left).expect("at most LOOK_LAST")
        });
        // EINTR or ENOMEM: the turn finds nothing and comes back here.
        if poll(&mut fds, limit.as_ref()).is_err() {
            return Vec::new();
        }
        sweep::clear(&self.signals);
        let ready = fds[2..].iter().map(|fd| !fd.revents().is_empty());
        pids.into_iter().zip(ready).filter_map(|(pid, ready)| ready.then_some(pid)).collect()
    }

    /// Reports a start once its outcome is known.
    fn settle(&mut self, pid: i32) {
        let Some(program) = self.programs.get_mut(&pid) else { return };
        let State::Executing(executing) = &mut program.state else { return };
        let Some(outcome) = executing.outcome() else { return };
        let token = program.token;
        let notice = match outcome {
            Ok(()) => {
                program.state = State::Running;
                Notice::Started { token, pid: pid.cast_unsigned() }
            }
            Err(error) => {
                program.state = State::Failed;
                self.tokens.remove(&token);
                Notice::StartFailed { token, error }
            }
        };
        self.channel.send(notice.encode(), Vec::new());
    }

    /// Reaps whoever has ended, and kills what ended programs left.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        while let Wait::Ended(pid) = system::ended_child(false) {
            ended.push(pid);
            // A program that ended at once may not have been settled yet; now it can be.
            self.settle(pid);
            if self.programs.contains_key(&pid) {
                // Before it is reaped: until then its number cannot become a stranger's.
                family::signal_group(pid, Signal::KILL);
            }
            let exit = system::reap(pid);
            let Some(program) = self.programs.remove(&pid) else { continue };
            if let Some(group) = program.group {
                self.groups.end(group);
            }
            if !matches!(program.state, State::Failed) {
                self.tokens.remove(&program.token);
                let notice = Notice::Exited { token: program.token, exit };
                self.channel.send(notice.encode(), Vec::new());
            }
        }
        if !ended.is_empty() {
            family::kill_strays(&self.programs, &ended);
            self.groups.tidy();
            self.look = Some((Instant::now() + LOOK_FIRST, LOOK_FIRST));
        }
    }

    /// Looks for strays when it is time to.
    fn look_again(&mut self) {
        let Some((_, waited)) = self.look.filter(|&(at, _)| at <= Instant::now()) else { return };
        family::kill_strays(&self.programs, &[]);
        self.groups.tidy();
        let wait = waited * 4;
        self.look = (wait <= LOOK_LAST).then(|| (Instant::now() + wait, wait));
    }

    /// Follows the daemon's orders; false once it is gone.
    fn receive(&mut self) -> bool {
        for _ in 0..PACKETS_MAX {
            let (order, descriptors) = match self.channel.receive() {
                Received::Packet(bytes, descriptors) => (Order::decode(bytes), descriptors),
                Received::Nothing => return true,
                Received::End => return false,
            };
            match order {
                Some(Order::Start { token, start }) => self.start(token, &start, descriptors),
                Some(Order::Stop { token, how }) => self.stop(token, how),
                Some(Order::Ping) => self.channel.send(Notice::Pong.encode(), Vec::new()),
                Some(Order::Hello { .. }) | None => {
                    complain("a message is not understood; ending");
                    return false;
                }
            }
        }
        true
    }

    fn start(&mut self, token: u64, start: &Start, descriptors: Vec<OwnedFd>) {
        self.marks += 1;
        let mark = format!("{}.{}", std::process::id(), self.marks);
        match self.launch(&mark, start, descriptors) {
            Ok((pid, executing, group)) => {
                let state = State::Executing(executing);
                self.programs.insert(pid, Program { token, mark, group, state });
                self.tokens.insert(token, pid);
            }
            Err(error) => {
                self.channel.send(Notice::StartFailed { token, error }.encode(), Vec::new());
            }
        }
    }

    fn launch(
        &mut self,
        mark: &str,
        start: &Start,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(i32, Executing, Option<Group>), StartError> {
        // The kernel hands over fewer where they would exceed our limit.
        let ends = child::Ends::of(descriptors, start.serves)
            .ok_or(StartError::System { step: Step::Pipes, errno: libc::EMFILE })?;
        let bounds = &start.bounds;
        let group = self.groups.make(&bounds.cgroup, self.marks, bounds.limits.memory)?;
        let limit = self.terms.descriptors;
        match child::launch(&self.environment, mark, start, ends, group.as_ref(), limit) {
            Ok((pid, executing)) => Ok((pid, executing, group)),
            Err(error) => {
                group.into_iter().for_each(|group| self.groups.end(group));
                Err(error)
            }
        }
    }

    fn stop(&mut self, token: u64, how: Stop) {
        if let Some(&pid) = self.tokens.get(&token) {
            let signal = match how {
                Stop::Term => Signal::TERM,
                Stop::Kill => Signal::KILL,
            };
            family::signal_session(pid, signal);
            if how == Stop::Term {
                // A stopped process acts on no signal but this and SIGKILL.
                family::signal_session(pid, Signal::CONT);
            }
        }
    }
}
