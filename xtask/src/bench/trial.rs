//! Programs that print one number, run round after round, in each round in another random order.

use super::order::Order;
use super::statistics::{Pairs, Quartiles};
use crate::shell::{self, Failure};
use std::path::Path;
use std::process::Command;

/// What is run, and where in its output the number stands.
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

    /// Context switches and system calls of it and all that it starts, where the kernel tells.
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

/// All rounds: the samples of each subject, in the order of the subjects.
pub(super) fn rounds(
    subjects: &[Subject],
    rounds: u32,
    seed: u64,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut order = Order::new(seed);
    let mut samples = vec![Vec::new(); subjects.len()];
    for round in 0..rounds as usize {
        for at in order.round(subjects.len()) {
            samples[at].push(subjects[at].once()?);
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    Ok(samples)
}

/// How many times `one` is `other`, within the rounds.
pub(super) fn ratio(one: &[f64], other: &[f64]) -> Quartiles {
    let mut pairs = Pairs::default();
    one.iter().zip(other).for_each(|(one, other)| pairs.push(*one, *other));
    pairs.ours_by_theirs()
}

/// The last line's only number.
pub(super) fn number(said: &str) -> Option<f64> {
    said.lines().last()?.trim().parse().ok()
}

pub(super) fn shown(of: Quartiles) -> String {
    let digits = usize::from(of.median < 100.0) + usize::from(of.median < 10.0);
    format!("{:.*} [{:.*}–{:.*}]", digits, of.median, digits, of.low, digits, of.high)
}

/// Words of a command that runs on one processor, the last.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_run_every_subject_and_keep_them_apart() {
        let subject = |name: &str, number: &str| Subject {
            name: name.to_owned(),
            words: vec!["echo".to_owned(), number.to_owned()],
            read: self::number,
        };
        let samples = rounds(&[subject("a", "2"), subject("b", "8")], 3, 1).unwrap();
        assert_eq!(samples, [vec![2.0; 3], vec![8.0; 3]]);
        assert_eq!(ratio(&samples[1], &samples[0]).median, 4.0);
    }
}
