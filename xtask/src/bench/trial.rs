//! Programs that print one number. They run in rounds, in a random order in each.

use super::ground::Ground;
use crate::shell::{self, Failure};
use std::path::Path;
use std::process::Command;

/// The command, and the function that reads the number from its output.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) read: fn(&str) -> Option<f64>,
}

impl Subject {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    fn once(&self) -> Result<f64, Failure> {
        let said = shell::output(self.command())?;
        let number = (self.read)(&said);
        number.ok_or_else(|| Failure::new(format!("{}: no number in {said:?}", self.name)))
    }

    /// Returns the context switches and system calls of the command and its child processes, if the kernel reports
    /// them.
    pub(super) fn counted(&self) -> Option<[f64; 2]> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", "context-switches,raw_syscalls:sys_enter", "--"]);
        command.args(&self.words);
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let of = |event: &str| {
            let line = text.lines().find(|line| line.contains(event))?;
            line.split(',').next()?.parse::<f64>().ok()
        };
        Some([of("context-switches")?, of("sys_enter")?])
    }
}

/// Runs all rounds. Returns the samples of each subject, in the order of the subjects.
pub(super) fn rounds(ground: &Ground, subjects: &[Subject]) -> Result<Vec<Vec<f64>>, Failure> {
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    ground.rounds(&names.join(", "), subjects.len(), |_, at| subjects[at].once())
}

/// Parses the only number of the last line.
pub(super) fn number(said: &str) -> Option<f64> {
    said.lines().last()?.trim().parse().ok()
}

/// Returns a command that runs on one processor, the last.
pub(super) fn on_one(words: &[String]) -> Vec<String> {
    let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let mut pinned = vec!["taskset".to_owned(), "-c".to_owned(), last.to_string()];
    pinned.extend_from_slice(words);
    pinned
}

pub(super) fn words(program: &Path, rest: &[&str]) -> Vec<String> {
    let mut words = vec![program.display().to_string()];
    words.extend(rest.iter().map(|&word| word.to_owned()));
    words
}
