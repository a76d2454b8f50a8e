//! The load beside a fault, as a process of its own, and the checker after it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use roadstead::ledger::{Verdict, check};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::daemon::BINARY;

/// The load ends by itself after this time, if its test has not ended it: no test comes near it.
const TIME_MAX: &str = "3600s";

pub(crate) struct Load {
    /// None: it was ended.
    child: Option<Child>,
    ledger: PathBuf,
    database: PathBuf,
}

impl Load {
    /// Saturates the main job with lines of work until it is ended, reconnecting whenever it must. So each fault
    /// has its load, however long the faults take.
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

    /// Ends it and returns its own account and the checker's.
    pub(crate) fn finish(self) -> (Value, Verdict) {
        let (ledger, database) = (self.ledger.clone(), self.database.clone());
        (self.end(), check(&ledger, &database, "hits").unwrap())
    }

    /// Ends it and returns its own account: no more lines are sent, and the replies to those that were are awaited.
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

/// A test that fails leaves no load behind.
impl Drop for Load {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
