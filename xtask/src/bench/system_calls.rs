//! Counts the system calls of a server, with strace in a short separate window.
//!
//! CPU time is measured in other windows, because strace stops the server at every call.

use super::child::{Child, wait_until};
use super::process;
use crate::shell::Failure;
use rustix::process::Signal;
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A call is shown by name if a line takes at least this many of them.
const SHOWN_FROM: f64 = 0.05;

/// Calls by name, the most frequent first.
pub(super) type Calls = Vec<(String, u64)>;

/// Counts the calls of all threads of these processes during `work`. Returns them with the result of `work`. The counts
/// are also stored in a file in this folder.
pub(super) fn counted<T>(
    processes: &[u32],
    folder: &Path,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(Calls, T), Failure> {
    let to = folder.join("calls.txt");
    let _ = fs::remove_file(&to);
    let mut command = Command::new("strace");
    command.args(["-c", "-f", "-q", "-o"]).arg(&to);
    command.args(processes.iter().map(|process| format!("--attach={process}")));
    let mut strace = Child::start(command, None)?;
    if !wait_until(|| processes.iter().all(|one| process::is_traced(*one))) {
        return Err(Failure::new("strace does not attach; may it do so here?"));
    }
    let given = work()?;
    // strace writes its table when it is interrupted.
    strace.signal(Signal::INT);
    let _ = strace.wait();
    Ok((table(&fs::read_to_string(to).unwrap_or_default()), given))
}

/// Returns the sum of all calls.
pub(super) fn all(calls: &Calls) -> u64 {
    calls.iter().map(|(_, count)| count).sum()
}

/// Parses the output of `strace -c`: `% time, seconds, usecs/call, calls, [errors,] syscall`.
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

/// Formats calls per line, in total and by name: `4.1 (read 2.0, write 2.0, …)`.
pub(super) fn shown(calls: &Calls, lines: f64) -> String {
    let a_line = |count: u64| count as f64 / lines;
    let named: Vec<String> = calls
        .iter()
        .filter(|(_, count)| a_line(*count) >= SHOWN_FROM)
        .map(|(name, count)| format!("{name} {:.2}", a_line(*count)))
        .collect();
    format!("{:.2} ({})", a_line(all(calls)), named.join(", "))
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
