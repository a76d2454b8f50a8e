//! Runs the load during a fault as a separate process, and the checker after it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use roadstead::ledger::{Verdict, check};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::daemon::BINARY;

/// The load ends by itself after this time, if its test has not stopped it. No test takes that long.
const TIME_MAX: &str = "3600s";

pub(crate) struct Load {
    /// `None`: it was stopped.
    child: Option<Child>,
    ledger: PathBuf,
    database: PathBuf,
}

impl Load {
    /// Saturates the main job with lines of work until it is stopped, and reconnects when needed. So every fault
    /// happens under load, independent of its duration.
    pub(crate) fn start(folder: &Path, address: &str) -> Self {
        let ledger = folder.join("ledger");
        let child = Command::new(BINARY)
            .args(["load", "--to", address, "--connections", "100", "--rate", "50"])
            .args([
                "--in-flight",
                "4",
                "--lines",
                "work",
                "--reply",
                "ack",
                "--reconnect",
                "--json",
            ])
            .args(["--for", TIME_MAX])
            .arg("--ledger")
            .arg(&ledger)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child: Some(child), ledger, database: folder.join("hits.db") }
    }

    /// Stops the load, and returns its report and the checker's verdict.
    pub(crate) fn finish(self) -> (Value, Verdict) {
        let (ledger, database) = (self.ledger.clone(), self.database.clone());
        (self.end(), check(&ledger, &database, "hits").unwrap())
    }

    /// Stops the load and returns its report: no more lines are sent, and replies in flight are awaited.
    pub(crate) fn end(mut self) -> Value {
        let child = self.child.take().unwrap();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).unwrap();
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        serde_json::from_str(said.trim())
            .unwrap_or_else(|error| panic!("the load said no JSON: {error}: {said}"))
    }
}

/// Stops the load also if a test fails.
impl Drop for Load {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
