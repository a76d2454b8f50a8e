//! One side of a measurement: a server that was started for it and is stopped after it.

use super::child::{Child, wait_until};
use super::process;
use crate::shell::Failure;
use serde_json::Value;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::thread;

/// A running server that listens.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) child: Child,
    /// Where its clients connect.
    pub(super) address: String,
}

impl Server {
    /// Starts a server and waits until it says `ready {…}`; its standard error goes to a file.
    pub(super) fn start(command: Command, log: &Path) -> Result<Self, Failure> {
        let mut child = Child::start(command, Some(log))?;
        let stdout = child.stdout.take().ok_or_else(|| child.failed("has no output"))?;
        let mut reader = BufReader::new(stdout);
        let address = ready(&mut reader).ok_or_else(|| child.failed("did not become ready"))?;
        // Nobody may have to wait because we do not read on; the thread ends with the output.
        thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        Ok(Self { child, address })
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
            let below = process::descendants(self.process());
            found = below.into_iter().filter(is_worker).collect();
            found.len() == count
        };
        let failed = || self.child.failed(&format!("there are not {count} worker programs"));
        wait_until(there).then_some(found).ok_or_else(failed)
    }

    /// The processes whose work is the server's own: all but the worker programs.
    pub(super) fn own(&self, workers: &[u32]) -> Vec<u32> {
        let mut own = self.child.family();
        own.retain(|id| !workers.contains(id));
        own
    }

    /// Tells it to end and waits for that.
    pub(super) fn stop(self) -> Result<(), Failure> {
        self.child.stop()
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
