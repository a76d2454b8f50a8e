//! A program that a measurement starts, and that does not outlive it.

use super::process;
use crate::shell::{self, Failure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to come up, and to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often something is looked at that nobody reports.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A program that runs.
#[derive(Debug)]
pub(super) struct Child {
    child: std::process::Child,
    shown: String,
    /// Where its standard error goes, if it is kept.
    log: Option<PathBuf>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
}

impl Child {
    /// Starts it with pipes to and from it. Its standard error goes to a file, or nowhere.
    pub(super) fn start(mut command: Command, log: Option<&Path>) -> Result<Self, Failure> {
        let shown = shell::show(&command);
        let errors = match log {
            Some(log) => File::create(log).map_err(Failure::at(log.display()))?.into(),
            None => Stdio::null(),
        };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = pipes.spawn().map_err(Failure::at(&shown))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Self { child, shown, log: log.map(Path::to_owned), stdin, stdout })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    pub(super) fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// It, and all that it has started.
    pub(super) fn family(&self) -> Vec<u32> {
        let mut all = process::descendants(self.id());
        all.insert(0, self.id());
        all
    }

    /// What it said last on its standard error.
    pub(super) fn said(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read_to_string(log).ok());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// What it did not do, with what it said.
    pub(super) fn failed(&self, why: &str) -> Failure {
        Failure::new(format!("{}: {why}\n{}", self.shown, self.said()))
    }

    /// Tells it to end.
    pub(super) fn signal(&self, signal: Signal) {
        // It may have ended by itself, which is what is wanted.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits until it ends by itself.
    pub(super) fn wait(&mut self) -> Result<(), Failure> {
        let status = self.child.wait().map_err(Failure::at(&self.shown))?;
        if status.success() { Ok(()) } else { Err(self.failed(&status.to_string())) }
    }

    /// Tells it to end and waits for that.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        self.signal(Signal::TERM);
        if wait_until(|| !self.is_running()) {
            return Ok(());
        }
        Err(self.failed("does not end; it is killed"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_running() {
            return;
        }
        // Reached when a measurement fails half-way, or when it did not end in time. A killed master
        // leaves its workers behind.
        for process in process::descendants(self.id()) {
            if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again, until it is so or patience ends.
pub(super) fn wait_until(mut so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if so() {
            return true;
        }
        if began.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
}
