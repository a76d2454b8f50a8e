//! The supervisor: the process that is the parent of every program. It outlives the daemon to end all programs.
//!
//! What it is: a process of one thread, started from the executable of the daemon by [`crate::init`], and its watchdog
//! process. What it depends on: the socket of one daemon, its child processes. What it must never depend on: the output
//! of a program; it holds no end of a program's pipes.
//!
//! ```text
//! daemon ─ watchdog ─ supervisor ─┬─ program ── its children
//!   └────── socket ───────┘       ├─ program
//!                                 ├─ reader (reads files of processes that can block)
//!                                 └─ processes that programs left behind (the supervisor is their subreaper)
//! ```
//!
//! - The daemon ends (its end of the socket closes): grace period, SIGTERM, SIGKILL for all remaining processes.
//! - The supervisor ends: the kernel kills the programs (their parent-death signal). The remaining processes become
//!   children of the watchdog, which kills them and exits. The daemon waits for the exit of the watchdog, then starts
//!   the next pair.
//! - The watchdog ends: the supervisor kills everything and exits. The daemon continues as above.
//! - The daemon and the supervisor end together: the watchdog kills the remaining processes. If all three end together,
//!   the kernel kills the programs; processes that escaped from the programs remain (the control group of the service
//!   manager ends them).

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
mod confine;
mod family;
mod orphans;
mod program;
mod reader;
mod report_error;
mod sweep;

use cgroup::{Group, Groups};
use child::{Environment, Executing, IGNORED};
pub(crate) use confine::cannot_kill;
use orphans::Orphans;
use program::{Program, State};
use report_error::report_error;

/// The maximum number of packets read in one iteration, so that a burst of starts does not delay reports of exits.
const PACKETS_MAX: usize = 16;

/// After the end of a program, strays are searched immediately, and again after 10, 40, 160 and 640 ms. The search is
/// repeated because a process in the middle of execve has no readable environment, and a list of children that is read
/// while others start and end may be incomplete.
const SEARCH_DELAY_FIRST: Duration = Duration::from_millis(10);
const SEARCH_DELAY_LAST: Duration = Duration::from_millis(640);

/// The delay between the searches after these, while there are orphans whose files could not be read.
const SEARCH_DELAY_UNKNOWN: Duration = Duration::from_secs(2);

/// The contents of the first message.
struct Terms {
    grace: Duration,
    term: Duration,
    descriptors: Option<u64>,
}

struct Supervisor {
    channel: Channel,
    signals: OwnedFd,
    watchdog: Pid,
    environment: Environment,
    terms: Terms,
    programs: HashMap<i32, Program>,
    /// The process id of every token whose program is executing or running.
    tokens: HashMap<u64, i32>,
    marks: u64,
    groups: Groups,
    orphans: Orphans,
    /// When to search for strays again, and the previous delay.
    next_search: Option<(Instant, Duration)>,
}

/// Runs the process until it exits.
pub(crate) fn run() -> ! {
    match enter() {
        Ok(mut supervisor) => supervisor.run_loop(),
        Err(error) => {
            report_error(&error.to_string());
            system::exit(1)
        }
    }
}

fn enter() -> io::Result<Supervisor> {
    let threads = threads()?;
    if threads > 1 {
        return Err(io::Error::other("spawn::init() must be the first thing in main"));
    }
    let socket = system::take_standard_input()?;
    if rustix::net::sockopt::socket_type(&socket).ok() != Some(rustix::net::SocketType::SEQPACKET) {
        return Err(io::Error::other("the supervisor is started by the daemon, never by hand"));
    }
    // Other descriptors that the embedder of the daemon or its service manager left open, such as listeners, are not
    // for programs.
    system::close_range(3, socket.as_raw_fd() - 1)?;
    system::close_range(socket.as_raw_fd() + 1, i32::MAX)?;
    // Other programs of this user must not read the environment of this process, which may contain secrets, nor trace
    // it.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    drop(null);

    // With an inherited, ignored SIGCHLD the kernel would reap the children of this process.
    system::reset_signals();
    IGNORED.iter().for_each(|signal| system::ignore(*signal));
    // Fails only for the leader of a process group, which already has its own group.
    let _ = rustix::process::setsid();
    let watchdog = rustix::process::getpid();
    match system::fork()? {
        Fork::Parent(supervisor) => {
            drop(socket);
            run_watchdog(supervisor)
        }
        Fork::Child => prepare(Channel::new(socket), watchdog),
    }
}

fn run_watchdog(supervisor: i32) -> ! {
    let _ = rustix::thread::set_name(c"watchdog");
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    loop {
        match system::ended_child(true) {
            Wait::Ended(pid) => {
                system::reap(pid);
                if pid == supervisor {
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

fn prepare(mut channel: Channel, watchdog: Pid) -> io::Result<Supervisor> {
    let _ = rustix::thread::set_name(c"supervisor");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = system::signal_descriptor(&[libc::SIGCHLD, libc::SIGUSR1])?;
    rustix::process::set_parent_process_death_signal(Some(Signal::USR1))?;
    if rustix::process::getppid() != Some(watchdog) {
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
        // The daemon ended immediately after its start. No program runs.
        Received::Nothing | Received::End => system::exit(0),
    };
    let pid = std::process::id();
    channel.send(Notice::Hello { pid }.encode(), Vec::new());
    Ok(Supervisor {
        channel,
        signals,
        watchdog,
        environment: Environment::inherited(),
        terms,
        programs: HashMap::new(),
        tokens: HashMap::new(),
        marks: 0,
        groups: Groups::default(),
        orphans: Orphans::new(),
        next_search: None,
    })
}

impl Supervisor {
    fn run_loop(&mut self) -> ! {
        loop {
            let executed = self.wait();
            for pid in executed {
                self.report_start(pid);
            }
            self.reap();
            self.search_again();
            if rustix::process::getppid() != Some(self.watchdog) {
                sweep::kill_all();
                self.reap();
                self.groups.end_all();
                system::exit(0);
            }
            if !self.receive() {
                // All children are to end by themselves, and this one would not.
                self.orphans.reader.kill();
                sweep::stop_all(&self.signals, self.terms.grace, self.terms.term);
                self.groups.end_all();
                system::exit(0)
            }
            self.channel.flush();
        }
    }

    /// Waits for an event. Returns the programs whose execve has succeeded or failed.
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
        let limit = self.next_search.map(|(at, _)| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec::try_from(left).expect("at most SEARCH_DELAY_UNKNOWN")
        });
        // On EINTR or ENOMEM this iteration finds no events, and the next one waits again.
        if poll(&mut fds, limit.as_ref()).is_err() {
            return Vec::new();
        }
        sweep::clear(&self.signals);
        let ready = fds[2..].iter().map(|fd| !fd.revents().is_empty());
        pids.into_iter().zip(ready).filter_map(|(pid, ready)| ready.then_some(pid)).collect()
    }

    /// Reports the result of a start, when it is available.
    fn report_start(&mut self, pid: i32) {
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

    /// Reaps the processes that have ended, and kills the processes that ended programs left behind.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        while let Wait::Ended(pid) = system::ended_child(false) {
            if self.orphans.was_reaped(pid) {
                system::reap(pid);
                continue;
            }
            ended.push(pid);
            // The start of a program that ended immediately may not have been reported yet. Its result is available
            // now.
            self.report_start(pid);
            if self.programs.contains_key(&pid) {
                // Before the process is reaped: until then its id cannot be reused for another process.
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
            self.orphans.kill_strays(&self.programs, &ended);
            self.groups.tidy();
            self.next_search = Some((Instant::now() + SEARCH_DELAY_FIRST, SEARCH_DELAY_FIRST));
        }
    }

    /// Searches for strays when the delay has passed.
    fn search_again(&mut self) {
        let Some((_, waited)) = self.next_search.filter(|&(at, _)| at <= Instant::now()) else {
            return;
        };
        let again = self.orphans.kill_strays(&self.programs, &[]);
        self.groups.tidy();
        let wait = waited * 4;
        self.next_search = match wait <= SEARCH_DELAY_LAST {
            true => Some((Instant::now() + wait, wait)),
            false => again.then(|| (Instant::now() + SEARCH_DELAY_UNKNOWN, waited)),
        };
    }

    /// Processes messages of the daemon. Returns false when the daemon has closed its end.
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
                    report_error("a message is not understood; ending");
                    return false;
                }
            }
        }
        true
    }

    fn start(&mut self, token: u64, start: &Start, descriptors: Vec<OwnedFd>) {
        self.marks += 1;
        let mark = format!("{}.{}", std::process::id(), self.marks);
        // Before the program: later its processes may use up the limit of processes.
        self.orphans.reader.ensure();
        let started = orphans::clock_ticks();
        match self.launch(&mark, start, descriptors) {
            Ok((pid, executing, group)) => {
                let state = State::Executing(executing);
                let keeps_user = start.bounds.user.is_some() && start.bounds.no_new_privs;
                let program = Program { token, mark, started, keeps_user, group, state };
                self.programs.insert(pid, program);
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
        // The kernel delivers fewer descriptors if all of them would exceed the limit of this process.
        let ends = child::ProgramDescriptors::of(descriptors, start.serves)
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
            if !family::signal_session(pid, signal) {
                // For example a set-user-ID program of root, started by a daemon that is not root.
                report_error(&format!(
                    "process {pid} does not end: the daemon has no right to signal it (CAP_KILL)"
                ));
            }
            if how == Stop::Term {
                // A stopped process acts on no signals except SIGCONT and SIGKILL.
                family::signal_session(pid, Signal::CONT);
            }
        }
    }
}
