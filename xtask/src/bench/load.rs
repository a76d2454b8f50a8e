//! The client side of a measurement: `roadstead load`, and its report.

use super::child::{Child, wait_until};
use super::ground::Ground;
use super::process;
use super::server::Server;
use crate::shell::{Failure, command};
use rustix::process::Signal;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Events that must not have happened to a line or a connection.
const SPOILERS: [&str; 7] =
    ["refused", "failed", "unknown", "misdirected", "unasked", "unsent", "reconnects"];

/// The work of the clients of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) connections: u32,
    /// Lines per second on each connection; `None`: as fast as they are answered.
    pub(super) rate: Option<f64>,
    /// Lines in flight per connection.
    pub(super) in_flight: u32,
    pub(super) seconds: u32,
    /// The format of the lines, `work` or `json`.
    pub(super) lines: &'static str,
    /// The expected reply, `any` or `ack`.
    pub(super) reply: &'static str,
}

/// Clients that send rows as fast as they are acknowledged, for this number of seconds.
pub(super) const fn saturating(seconds: u32) -> Plan {
    Plan { connections: 1000, rate: None, in_flight: 20, seconds, lines: "json", reply: "ack" }
}

/// A running load.
#[derive(Debug)]
pub(super) struct Load(Child);

/// The results of the lines.
#[derive(Debug, PartialEq)]
pub(super) struct Account {
    pub(super) answered: u64,
    pub(super) seconds: f64,
    /// The time from a line to its answer: median and 99th percentile, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

impl Load {
    pub(super) fn start(ground: &Ground, to: &str, plan: Plan) -> Result<Self, Failure> {
        Child::start(command(ground.roadstead(), arguments(to, plan)), None).map(Self)
    }

    /// Runs `work` while a load runs on a server: after all clients were accepted and `settle` has passed. No client
    /// may disconnect meanwhile.
    pub(super) fn during<T>(
        ground: &Ground,
        server: &Server,
        plan: Plan,
        settle: Duration,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Account), Failure> {
        let open = || process::descriptors(server.process()).unwrap_or_default();
        let full = open() + usize::try_from(plan.connections).unwrap_or(usize::MAX);
        let mut load = Self::start(ground, &server.address, plan)?;
        if !wait_until(|| open() >= full || !load.is_running()) || !load.is_running() {
            let error = load.account().err().map(|failure| failure.output).unwrap_or_default();
            return Err(server.child.failed(&format!("not all clients were accepted\n{error}")));
        }
        thread::sleep(settle);
        let given = work()?;
        if open() < full || !load.is_running() {
            return Err(Failure::new("clients left within the window"));
        }
        Ok((given, load.finish()?))
    }

    /// Returns whether the load is still running.
    fn is_running(&mut self) -> bool {
        self.0.is_running()
    }

    /// Stops sending early, and waits for the replies in flight.
    fn finish(self) -> Result<Account, Failure> {
        // A load that ended by itself is counted in the same way.
        self.0.signal(Signal::TERM);
        self.account()
    }

    /// Waits for the end. A line that was not answered makes the measurement invalid.
    pub(super) fn account(mut self) -> Result<Account, Failure> {
        let stdout = self.0.stdout.take().ok_or_else(|| self.0.failed("has no output"))?;
        let said = std::io::read_to_string(stdout).map_err(Failure::at("load"))?;
        account(&said).map_err(|why| self.0.failed(&format!("{why}\n{said}")))
    }
}

fn arguments(to: &str, plan: Plan) -> Vec<String> {
    let Plan { connections, rate, in_flight, seconds, lines, reply } = plan;
    let pace = rate.map_or_else(|| "--saturate".to_owned(), |rate| format!("--rate={rate}"));
    vec![
        "load".to_owned(),
        format!("--to={to}"),
        format!("--connections={connections}"),
        pace,
        format!("--in-flight={in_flight}"),
        format!("--for={seconds}s"),
        format!("--lines={lines}"),
        format!("--reply={reply}"),
        "--json".to_owned(),
    ]
}

fn account(said: &str) -> Result<Account, String> {
    let json: Value = serde_json::from_str(said.trim()).map_err(|error| error.to_string())?;
    let count = |key: &str| json[key].as_u64().ok_or_else(|| format!("there is no `{key}`"));
    for key in SPOILERS {
        match count(key)? {
            0 => {}
            lines => return Err(format!("`{key}` is {lines}; the measurement needs 0")),
        }
    }
    let (sent, answered) = (count("sent")?, count("acknowledged")?);
    if sent != answered || sent == 0 {
        return Err(format!("{sent} lines sent and {answered} answered"));
    }
    let seconds = json["seconds"].as_f64().ok_or("there is no `seconds`")?;
    let latency = |of: &str| json["latency_ms"][of].as_f64().ok_or("there is no `latency_ms`");
    Ok(Account { answered, seconds, p50_ms: latency("p50")?, p99_ms: latency("p99")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(change: impl FnOnce(&mut Value)) -> String {
        let mut json = json!({
            "sent": 5000, "acknowledged": 5000, "refused": 0, "failed": 0, "unknown": 0,
            "misdirected": 0, "unasked": 0, "unsent": 0, "reconnects": 0, "seconds": 5.01,
            "latency_ms": { "p50": 0.2, "p99": 1.5, "max": 3.0 },
        });
        change(&mut json);
        json.to_string()
    }

    #[test]
    fn a_clean_account_is_taken() {
        assert_eq!(
            account(&said(|_| {})),
            Ok(Account { answered: 5000, seconds: 5.01, p50_ms: 0.2, p99_ms: 1.5 })
        );
    }

    #[test]
    fn any_line_without_its_answer_spoils_it() {
        assert!(account(&said(|json| json["misdirected"] = json!(1))).is_err());
        assert!(account(&said(|json| json["refused"] = json!(3))).is_err());
        assert!(account(&said(|json| json["acknowledged"] = json!(4999))).is_err());
        assert!(account(&said(|json| json["unknown"] = Value::Null)).is_err());
        assert!(account("no json").is_err());
    }

    #[test]
    fn saturation_has_no_rate() {
        let words = arguments("127.0.0.1:1", saturating(5));
        assert!(words.contains(&"--saturate".to_owned()));
        assert!(!words.iter().any(|word| word.starts_with("--rate")));
    }
}
