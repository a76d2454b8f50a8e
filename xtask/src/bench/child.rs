//! A child process of a measurement, which never outlives the measurement.

use super::process;
use crate::shell::{self, Failure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time for a server to start, and to end after a signal.
const PATIENCE: Duration = Duration::from_secs(30);
/// The polling interval for conditions that cannot be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running program.
#[derive(Debug)]
pub(super) struct Child {
    child: std::process::Child,
    shown: String,
    /// The file with its standard error, if it is kept.
    log: Option<PathBuf>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
}

impl Child {
    /// Starts the program with pipes for its input and output. Its standard error is written to a file or discarded.
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

    /// Returns whether the program is still running.
    pub(super) fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Returns the ids of the program and all of its descendants.
    pub(super) fn family(&self) -> Vec<u32> {
        let mut all = process::descendants(self.id());
        all.insert(0, self.id());
        all
    }

    /// Returns the end of its standard error.
    pub(super) fn said(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read_to_string(log).ok());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns a failure with the reason and the end of its standard error.
    pub(super) fn failed(&self, why: &str) -> Failure {
        Failure::new(format!("{}: {why}\n{}", self.shown, self.said()))
    }

    /// Sends a signal to the program.
    pub(super) fn signal(&self, signal: Signal) {
        // An error is ignored, because the program may have ended already.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits until the program ends by itself.
    pub(super) fn wait(&mut self) -> Result<(), Failure> {
        let status = self.child.wait().map_err(Failure::at(&self.shown))?;
        if status.success() { Ok(()) } else { Err(self.failed(&status.to_string())) }
    }

    /// Stops the program and waits for its end.
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
        // Reached if a measurement fails, or if the program did not end in time. A killed master process leaves its
        // workers behind.
        for process in process::descendants(self.id()) {
            if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls the condition until it is true or the maximum time has passed.
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
