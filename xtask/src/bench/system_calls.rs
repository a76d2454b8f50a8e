//! How many system calls a server makes, counted by strace over a short window of its own.
//!
//! Not in the windows in which CPU time is measured: strace stops the server at every call.

use crate::shell::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Shown by name when a line takes at least so many of them.
const SHOWN_FROM: f64 = 0.05;

/// A strace that counts.
#[derive(Debug)]
pub(super) struct Counting {
    child: Child,
}

/// Calls by name, the most frequent first.
pub(super) type Calls = Vec<(String, u64)>;

impl Counting {
    /// Attaches to all threads of these processes.
    pub(super) fn start(processes: &[u32], to: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("strace");
        command.args(["-c", "-f", "-q", "-o"]).arg(to);
        for process in processes {
            command.arg(format!("--attach={process}"));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Failure::new(format!("strace: {error}")))?;
        Ok(Self { child })
    }

    /// Detaches and reads the table.
    pub(super) fn finish(self, from: &Path) -> Result<Calls, Failure> {
        let calls = self.finish_any(from)?;
        if calls.is_empty() {
            return Err(Failure::new("strace counted nothing; may it attach to processes here?"));
        }
        Ok(calls)
    }

    /// As [`Self::finish`], where nothing may be what there is to count.
    pub(super) fn finish_any(mut self, from: &Path) -> Result<Calls, Failure> {
        // strace writes its table when it is interrupted; if it has ended already the table, or
        // its absence, tells.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        self.child.wait().map_err(|error| Failure::new(format!("strace: {error}")))?;
        Ok(table(&fs::read_to_string(from).unwrap_or_default()))
    }
}

/// Reads what `strace -c` prints: `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn table(text: &str) -> Calls {
    let mut calls: Calls = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = *words.last()?;
            let count = words.get(3)?.parse().ok()?;
            (words.len() >= 5 && name != "total").then(|| (name.to_owned(), count))
        })
        .collect();
    calls.sort_by_key(|(_, count)| Reverse(*count));
    calls
}

/// Calls a line, in all and by name: `4.1 (read 2.0, write 2.0, …)`.
pub(super) fn shown(calls: &Calls, lines: f64) -> String {
    let a_line = |count: u64| count as f64 / lines;
    let all: u64 = calls.iter().map(|(_, count)| count).sum();
    let named: Vec<String> = calls
        .iter()
        .filter(|(_, count)| a_line(*count) >= SHOWN_FROM)
        .map(|(name, count)| format!("{name} {:.2}", a_line(*count)))
        .collect();
    format!("{:.2} ({})", a_line(all), named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           3       200           read
 30.00    0.000300           3       110        10 write
 10.00    0.000100           1         2           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           3       312        10 total
";

    #[test]
    fn a_table_is_read_with_and_without_errors() {
        let calls = table(TABLE);
        let named: Vec<(&str, u64)> = calls.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(named, [("read", 200), ("write", 110), ("epoll_wait", 2)]);
    }

    #[test]
    fn calls_are_shown_a_line() {
        assert_eq!(shown(&table(TABLE), 100.0), "3.12 (read 2.00, write 1.10)");
    }

    #[test]
    fn nothing_is_no_table() {
        assert!(table("strace: attach: Operation not permitted\n").is_empty());
    }
}
