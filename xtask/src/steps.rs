//! A command with several steps: prints one line per step, with its time.

use crate::shell::Failure;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Runs steps and records the failed ones.
#[derive(Debug)]
pub(crate) struct Steps {
    keep_going: bool,
    only: Vec<String>,
    failed: Vec<&'static str>,
    began: Instant,
}

impl Steps {
    /// `only` selects steps by name. If it is empty, all run.
    pub(crate) fn new(keep_going: bool, only: &[String]) -> Self {
        Self { keep_going, only: only.to_vec(), failed: Vec::new(), began: Instant::now() }
    }

    /// Runs one step, unless an earlier one failed and `keep_going` is off. The work returns a note for its line.
    /// `repeat` is the command that is printed if a failure has no command of its own.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        repeat: &str,
        work: impl FnOnce() -> Result<String, Failure>,
    ) {
        let wanted = self.only.is_empty() || self.only.iter().any(|only| only == name);
        if !wanted || (!self.failed.is_empty() && !self.keep_going) {
            return;
        }
        announce(name);
        let began = Instant::now();
        let result = work();
        let took = seconds(began.elapsed());
        match result {
            Ok(note) => println!("{name:<10} ok     {took:>8}  {note}"),
            Err(failure) => {
                self.failed.push(name);
                println!("{name:<10} FAILED {took:>8}");
                for line in failure.output.trim_end().lines() {
                    println!("    {line}");
                }
                println!("  repeat with: {}", failure.repeat.as_deref().unwrap_or(repeat));
            }
        }
    }

    /// Returns the failed steps, in their order.
    pub(crate) fn failed(&self) -> &[&'static str] {
        &self.failed
    }

    /// Returns the total time.
    pub(crate) fn took(&self) -> String {
        seconds(self.began.elapsed())
    }
}

/// On a terminal, prints the name of the running step until its result line replaces it.
fn announce(name: &str) {
    if io::stdout().is_terminal() {
        print!("{name:<10} …\r");
        // Output errors of the terminal are ignored.
        let _ = io::stdout().flush();
    }
}

/// Formats a time in tenths of a second.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail() -> Result<String, Failure> {
        Err(Failure::new("no"))
    }

    #[test]
    fn a_failure_stops_the_chore() {
        let mut steps = Steps::new(false, &[]);
        steps.step("first", "again", fail);
        steps.step("second", "again", || panic!("must not run"));
        assert_eq!(steps.failed(), ["first"]);
    }

    #[test]
    fn keep_going_runs_the_rest_and_still_fails() {
        let mut steps = Steps::new(true, &[]);
        let mut ran = false;
        steps.step("first", "again", fail);
        steps.step("second", "again", || {
            ran = true;
            Ok(String::new())
        });
        assert!(ran);
        assert_eq!(steps.failed(), ["first"]);
    }

    #[test]
    fn only_the_named_steps_run() {
        let mut steps = Steps::new(false, &["second".to_owned()]);
        steps.step("first", "again", || panic!("must not run"));
        steps.step("second", "again", fail);
        assert_eq!(steps.failed(), ["second"]);
    }
}
