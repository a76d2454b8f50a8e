//! A spawner with its reports, programs with their pipes, and the state of other processes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use spawn::{Command, Exit, Pipes, Report, Spawn, Spawner, StartError, Stop};

/// Longer than any step takes on a busy machine. Only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The guarantee: no process is left this long after the daemon or the supervisor ended.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(3);

pub(crate) fn shell(script: &str) -> Command {
    command("/bin/sh", &["-c", script])
}

pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    Command {
        program: program.into(),
        arguments: arguments.iter().map(|&argument| argument.into()).collect(),
        name: "test/1".into(),
        ..Command::default()
    }
}

/// A spawner. Reports can be taken in any order of tokens, but those of one token only in their order.
pub(crate) struct Daemon {
    /// `None` after a test has taken it.
    pub(crate) spawner: Option<Spawner>,
    reports: Receiver<Report>,
    passed: RefCell<VecDeque<Report>>,
}

/// A running program.
pub(crate) struct Program {
    pub(crate) token: u64,
    pub(crate) pid: i32,
    pub(crate) pipes: Pipes,
}

impl Daemon {
    pub(crate) fn new() -> Self {
        let (send, reports) = channel();
        let report = move |report| drop(send.send(report));
        let spawner = Spawner::new(Box::new(report)).expect("a supervisor");
        Self { spawner: Some(spawner), reports, passed: RefCell::default() }
    }

    pub(crate) fn spawner(&mut self) -> &mut Spawner {
        self.spawner.as_mut().expect("not taken")
    }

    /// Returns the first report that `wanted` accepts. The others remain for later calls.
    pub(crate) fn report<T>(&self, wanted: impl Fn(Report) -> Result<T, Report>) -> T {
        let mut passed = self.passed.borrow_mut();
        for _ in 0..passed.len() {
            let report = passed.pop_front().expect("counted");
            match wanted(report) {
                Ok(found) => {
                    return found;
                }
                Err(other) => passed.push_back(other),
            }
        }
        loop {
            let report = self.reports.recv_timeout(PATIENCE).expect("a report in time");
            match wanted(report) {
                Ok(found) => return found,
                Err(other) => passed.push_back(other),
            }
        }
    }

    pub(crate) fn start(&mut self, token: u64, command: Command) -> Program {
        self.spawner().start(token, command);
        self.started(token)
    }

    pub(crate) fn started(&self, token: u64) -> Program {
        self.report(|report| match report {
            Report::Started { token: of, pid, pipes } if of == token => {
                Ok(Program { token, pid: pid.cast_signed(), pipes })
            }
            Report::StartFailed { token: of, error } if of == token => panic!("{error}"),
            other => Err(other),
        })
    }

    pub(crate) fn start_error(&mut self, command: Command) -> StartError {
        self.spawner().start(0, command);
        self.report(|report| match report {
            Report::StartFailed { token: 0, error } => Ok(error),
            Report::Started { token: 0, .. } => panic!("it started"),
            other => Err(other),
        })
    }

    pub(crate) fn exit(&self, token: u64) -> Exit {
        self.report(|report| match report {
            Report::Exited { token: of, exit } if of == token => Ok(exit),
            other => Err(other),
        })
    }

    pub(crate) fn kill(&mut self, program: &Program) -> Exit {
        self.spawner().stop(program.token, Stop::Kill);
        self.exit(program.token)
    }

    /// Runs a script until it ends, and returns its output.
    pub(crate) fn output(&mut self, command: Command) -> String {
        let program = self.start(1, command);
        let output = program.rest();
        let exit = self.exit(1);
        let complaint = read_all(&program.pipes.stderr);
        assert_eq!(exit.status, spawn::Status::Code(0), "{complaint}");
        output
    }

    /// Returns the number of reports that were not taken, after another start was answered.
    pub(crate) fn unread(&mut self) -> usize {
        self.output(shell("exit"));
        let mut passed = self.passed.borrow_mut();
        passed.extend(self.reports.try_iter());
        passed.len()
    }

    pub(crate) fn supervisor(&self) -> i32 {
        let spawner = self.spawner.as_ref().expect("not taken");
        spawner.supervisor_pid().expect("there is a supervisor").cast_signed()
    }
}

impl Drop for Daemon {
    /// Ends all programs, so that no test finds processes of another test.
    fn drop(&mut self) {
        if let Some(spawner) = self.spawner.take() {
            spawner.finish();
        }
    }
}

impl Program {
    /// Returns the next line of its output, without the line end.
    pub(crate) fn line(&self) -> String {
        let mut line = Vec::new();
        while let Some(byte) = read_byte(&self.pipes.stdout).filter(|&byte| byte != b'\n') {
            line.push(byte);
        }
        String::from_utf8(line).expect("text")
    }

    /// Returns the process whose id the program writes on a line.
    pub(crate) fn told(&self) -> Process {
        Process::of(self.line().trim().parse().expect("a process id"))
    }

    /// Returns all its remaining output.
    pub(crate) fn rest(&self) -> String {
        read_all(&self.pipes.stdout)
    }

    pub(crate) fn process(&self) -> Process {
        Process::of(self.pid)
    }
}

fn read_byte(from: &OwnedFd) -> Option<u8> {
    let mut byte = [0];
    loop {
        match rustix::io::read(from, &mut byte) {
            Ok(0) => return None,
            Ok(_) => return Some(byte[0]),
            Err(rustix::io::Errno::AGAIN) => wait(from),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn read_all(from: &OwnedFd) -> String {
    let bytes: Vec<u8> = std::iter::from_fn(|| read_byte(from)).collect();
    String::from_utf8(bytes).expect("text")
}

fn wait(fd: &OwnedFd) {
    let limit = Timespec::try_from(PATIENCE).expect("seconds");
    let ready = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)).expect("poll");
    assert_eq!(ready, 1, "something to read in time");
}

/// A process that cannot be confused with a later process of the same id.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl Process {
    /// Returns a running process.
    pub(crate) fn of(pid: i32) -> Self {
        let started = stat(pid, 19).unwrap_or_else(|| panic!("process {pid} is not there"));
        Self { pid, started: started.parse().expect("a number") }
    }

    /// Whether it runs. A zombie counts as ended: it may remain only because no process reaps it (for example in a
    /// container whose first process reaps no children).
    pub(crate) fn runs(&self) -> bool {
        let same = stat(self.pid, 19).is_some_and(|started| started == self.started.to_string());
        same && stat(self.pid, 0).is_some_and(|state| state != "Z" && state != "X")
    }

    pub(crate) fn parent(&self) -> i32 {
        stat(self.pid, 1).expect("it runs").parse().expect("a number")
    }

    /// Returns the name of its executable.
    pub(crate) fn name(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).expect("it runs");
        name.trim().to_owned()
    }

    /// Whether its environment shows its origin.
    pub(crate) fn is_marked(&self) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).expect("it runs");
        environment.split(|&byte| byte == 0).any(|variable| variable.starts_with(b"ROADSTEAD_"))
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid).expect("a process id");
        rustix::process::kill_process(pid, signal).expect("it is there");
    }
}

/// Returns a field of `/proc/PID/stat`, counted from the state.
fn stat(pid: i32, field: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of a process need not be text.
    let stat = String::from_utf8_lossy(&stat);
    let (_, tail) = stat.rsplit_once(')')?;
    tail.split_ascii_whitespace().nth(field).map(str::to_owned)
}

/// Polls until the condition is true. Panics after `limit`.
pub(crate) fn until(limit: Duration, what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + limit;
    while !so() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::yield_now();
        let pause = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let _ = poll(&mut [], Some(&pause));
    }
}

pub(crate) fn all_gone(limit: Duration, processes: &[Process]) {
    let end = Instant::now() + limit;
    for process in processes {
        let left = end.saturating_duration_since(Instant::now());
        until(left, &format!("{process:?} ended"), || !process.runs());
    }
}

/// Returns the number of descriptors of this process.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}
