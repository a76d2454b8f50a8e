//! One side of a measurement: a server that was started for it and is stopped after it.

use super::process;
use crate::shell::{self, Failure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to come up, and to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often something is looked at that nobody reports.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running server that listens.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    log: PathBuf,
    /// Where its clients connect.
    pub(super) address: String,
}

impl Server {
    /// Starts a server and waits until it says `ready {…}`; its standard error goes to a file.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Self, Failure> {
        let shown = shell::show(&command);
        let failed = |error: io::Error| Failure::new(format!("{shown}: {error}"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take();
        let mut server = Self { child, log: log.to_owned(), address: String::new() };
        let mut reader = BufReader::new(stdout.ok_or_else(|| Failure::new("no output"))?);
        server.address = ready(&mut reader).ok_or_else(|| {
            Failure::new(format!("{shown} did not become ready\n{}", server.said()))
        })?;
        // Nobody may have to wait because we do not read on; the thread ends with the output.
        thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        Ok(server)
    }

    /// The process that was started.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its worker programs, known by the arguments they were started with, once there are so many.
    pub(super) fn workers(&self, args: &[&str], count: usize) -> Result<Vec<u32>, Failure> {
        // A child that was forked but not exec'd yet bears the words of its parent, which end
        // with the same arguments; so they have to be all.
        let is_worker = |id: &u32| process::words(*id).get(1..).is_some_and(|given| given == args);
        let mut found = Vec::new();
        let there = || {
            let below = process::descendants(self.process()).unwrap_or_default();
            found = below.into_iter().filter(is_worker).collect();
            found.len() == count
        };
        wait_until(there).then_some(found).ok_or_else(|| {
            Failure::new(format!("there are not {count} worker programs\n{}", self.said()))
        })
    }

    /// The processes whose work is the server's own: all but the worker programs.
    pub(super) fn own(&self, workers: &[u32]) -> Vec<u32> {
        let mut own = process::descendants(self.process()).unwrap_or_default();
        own.retain(|id| !workers.contains(id));
        own.insert(0, self.process());
        own
    }

    /// What it said last on its standard error.
    pub(super) fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Tells it to end and waits for that.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        self.terminate();
        let ended = wait_until(|| self.child.try_wait().is_ok_and(|status| status.is_some()));
        if ended { Ok(()) } else { Err(Failure::new("a server does not end; it was killed")) }
    }

    fn terminate(&self) {
        // It may have ended by itself, which is what is wanted.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        // Reached when a measurement fails half-way, or when the server did not end in time.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the `ready` line, if one comes before the output ends.
fn ready(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if let Some(json) = line.strip_prefix("ready ") {
            let said: Value = serde_json::from_str(json).ok()?;
            return said["listeners"]["main"].as_str().map(str::to_owned);
        }
        line.clear();
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_found_behind_others() {
        let said = "starting\nready {\"listeners\":{\"main\":\"127.0.0.1:4711\"},\"admin\":null}\n";
        assert_eq!(ready(&mut said.as_bytes()).as_deref(), Some("127.0.0.1:4711"));
        assert_eq!(ready(&mut "starting\n".as_bytes()), None);
        assert_eq!(ready(&mut "ready soon\n".as_bytes()), None);
    }
}
