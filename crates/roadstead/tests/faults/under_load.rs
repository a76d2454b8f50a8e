//! The load beside a fault, as a process of its own, and the checker after it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use roadstead::ledger::{Verdict, check};
use serde_json::Value;

use crate::daemon::BINARY;

pub(crate) struct Load {
    child: Child,
    ledger: PathBuf,
    database: PathBuf,
}

impl Load {
    /// Saturates the main job with lines of work for `time`, reconnecting whenever it must.
    pub(crate) fn start(folder: &Path, address: &str, time: Duration) -> Self {
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
            .args(["--for", &format!("{}ms", time.as_millis())])
            .arg("--ledger")
            .arg(&ledger)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, ledger, database: folder.join("hits.db") }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end and returns its own account and the checker's.
    pub(crate) fn finish(self) -> (Value, Verdict) {
        let (ledger, database) = (self.ledger.clone(), self.database.clone());
        (self.end(), check(&ledger, &database, "hits").unwrap())
    }

    /// Waits for its end and returns its own account.
    pub(crate) fn end(self) -> Value {
        let out = self.child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        serde_json::from_str(said.trim())
            .unwrap_or_else(|error| panic!("the load said no JSON: {error}: {said}"))
    }
}
