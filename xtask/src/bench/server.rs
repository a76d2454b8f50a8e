//! One side of a measurement: a server that is started for it and stopped after it.

use super::child::{Child, wait_until};
use super::process;
use crate::shell::Failure;
use serde_json::Value;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) child: Child,
    /// The address for its clients.
    pub(super) address: String,
}

impl Server {
    /// Starts a server and waits until it prints `ready {…}`. Its standard error is written to a file.
    pub(super) fn start(command: Command, log: &Path) -> Result<Self, Failure> {
        let mut child = Child::start(command, Some(log))?;
        let stdout = child.stdout.take().ok_or_else(|| child.failed("has no output"))?;
        let mut reader = BufReader::new(stdout);
        let address = ready(&mut reader).ok_or_else(|| child.failed("did not become ready"))?;
        // The output is read to its end, so that the server never blocks on a full pipe. The thread ends with the
        // output.
        thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        Ok(Self { child, address })
    }

    /// Returns the id of the started process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns the worker programs, identified by their arguments, when there are `count` of them.
    pub(super) fn workers(&self, args: &[&str], count: usize) -> Result<Vec<u32>, Failure> {
        // A forked child that has not called exec yet has the command line of its parent, which ends with the same
        // arguments. So all arguments must be equal.
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

    /// Returns the server's own processes: all except the worker programs.
    pub(super) fn own(&self, workers: &[u32]) -> Vec<u32> {
        let mut own = self.child.family();
        own.retain(|id| !workers.contains(id));
        own
    }

    /// Stops the server and waits for its end.
    pub(super) fn stop(self) -> Result<(), Failure> {
        self.child.stop()
    }
}

/// Returns a port that was free a moment ago, for a server that cannot choose one itself.
pub(super) fn free_port() -> Result<u16, Failure> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
    bound.map(|address| address.port()).map_err(Failure::at("a port"))
}

/// Returns the address in the `ready` line, or `None` if the output ends before.
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
