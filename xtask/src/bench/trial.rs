//! Rounds: in each, every subject runs once, in a random order. Their samples, and statistics of them.
//!
//! With a fixed order, each subject would always run after the same other one, with the caches and at the clock speed
//! that the other one leaves behind.

use super::statistics::Quartiles;
use crate::shell::Failure;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

/// The samples of each subject, one per round. A sample is a JSON object with the measured values by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trial(Vec<(String, Vec<Value>)>);

impl Trial {
    /// Runs all rounds. `sample` runs one subject once; it is called with the round and the number of the subject.
    pub(super) fn run(
        (rounds, seed): (u32, u64),
        name: &str,
        subjects: &[impl AsRef<str>],
        mut sample: impl FnMut(u32, usize) -> Result<Value, Failure>,
    ) -> Result<Self, Failure> {
        let mut all: Vec<_> =
            subjects.iter().map(|subject| (subject.as_ref().to_owned(), Vec::new())).collect();
        for round in 0..rounds {
            eprintln!("{name}: round {} of {rounds}", round + 1);
            for at in order(seed, round, subjects.len()) {
                let measured = sample(round, at)?;
                eprintln!("  {}: {measured}", all[at].0);
                all[at].1.push(measured);
            }
        }
        Ok(Self(all))
    }

    /// Reads the form that [`Trial::to_json`] returns. If it is none, there are no subjects.
    pub(super) fn read(stored: &Value) -> Self {
        Self(serde_json::from_value(stored.clone()).unwrap_or_default())
    }

    pub(super) fn to_json(&self) -> Value {
        serde_json::json!(self.0)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn has(&self, subject: &str) -> bool {
        self.names().any(|name| name == subject)
    }

    /// Returns all values of this name of a subject.
    pub(super) fn samples(&self, subject: &str, what: &str) -> Vec<f64> {
        let own = self.0.iter().filter(|(name, _)| name == subject);
        own.flat_map(|(_, samples)| samples).filter_map(|sample| sample[what].as_f64()).collect()
    }

    /// Returns the last sample of a subject.
    pub(super) fn last(&self, subject: &str) -> &Value {
        let own = self.0.iter().find(|(name, _)| name == subject);
        own.and_then(|(_, samples)| samples.last()).unwrap_or(&Value::Null)
    }

    pub(super) fn sum(&self, subject: &str, what: &str) -> f64 {
        self.samples(subject, what).iter().sum()
    }

    pub(super) fn of(&self, subject: &str, what: &str) -> Quartiles {
        Quartiles::of(&self.samples(subject, what))
    }

    pub(super) fn median(&self, subject: &str, what: &str) -> f64 {
        self.of(subject, what).median
    }

    /// Returns the ratio of two subjects, round by round.
    pub(super) fn ratio(&self, what: &str, over: &str, under: &str) -> Quartiles {
        Quartiles::ratio(&self.samples(over, what), &self.samples(under, what))
    }
}

/// Returns the numbers below `count` in an order that looks random and depends on the seed and the round.
fn order(seed: u64, round: u32, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|subject| {
        let mut hasher = DefaultHasher::new();
        (seed, round, subject).hash(&mut hasher);
        hasher.finish()
    });
    order
}

/// Returns a seed that differs from run to run and is short enough to be typed again.
pub(super) fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_round_has_every_subject_once() {
        for round in 0..100 {
            let mut order = order(7, round, 5);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert!(order(7, 0, 0).is_empty());
    }

    #[test]
    fn every_subject_runs_first_and_after_every_other() {
        let rounds: Vec<_> = (0..200).map(|round| order(7, round, 4)).collect();
        for one in 0..4 {
            assert!(rounds.iter().any(|round| round[0] == one));
            for other in (0..4).filter(|other| *other != one) {
                assert!(rounds.iter().any(|round| round.windows(2).any(|two| two == [one, other])));
            }
        }
    }

    #[test]
    fn a_seed_gives_its_orders_again() {
        let rounds = |seed| (0..20).map(|round| order(seed, round, 6)).collect::<Vec<_>>();
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was twice as slow in the second round. The ratio does not change.
        let ms = [[1.0, 20.0], [2.0, 40.0]];
        let sample = |round: u32, at: usize| Ok(json!({ "ms": ms[round as usize][at] }));
        let trial = Trial::run((2, 7), "two", &["ours", "theirs"], sample).unwrap();
        assert_eq!(trial.ratio("ms", "theirs", "ours"), Quartiles::of(&[20.0]));
        assert_eq!((trial.median("ours", "ms"), trial.sum("theirs", "ms")), (1.5, 60.0));
        assert_eq!(Trial::read(&trial.to_json()), trial);
        assert!(!Trial::read(&json!({})).has("ours") && trial.has("ours"));
    }
}
