//! What was seen in a world: what the gateway has sent, what must not be, and all that happened.

use crate::happening::Moment;
use crate::transcripts::Transcripts;

/// Violations that are kept; the others follow from these as a rule.
const VIOLATIONS_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct Record {
    /// What the gateway has sent.
    pub(crate) transcripts: Transcripts,
    /// What was seen that must not be.
    pub(crate) violations: Vec<String>,
    /// One number for all that happened, and how much it was.
    digest: u64,
    notes: u64,
    /// Somebody wants to read what happens.
    told: bool,
}

impl Record {
    pub(crate) fn new(told: bool) -> Self {
        Self {
            transcripts: Transcripts::default(),
            violations: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            notes: 0,
            told,
        }
    }

    /// Notes what happens: `who` and `number` are what the words say they are.
    pub(crate) fn note(&mut self, now: Moment, words: &'static str, who: usize, number: usize) {
        self.notes += 1;
        let first = words
            .as_bytes()
            .iter()
            .fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        for word in [first, nanos, who as u64, number as u64] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        self.tell(now, || format!("{words}: {who}, {number}"));
    }

    /// Notes something for a reader only.
    pub(crate) fn tell(&self, now: Moment, text: impl FnOnce() -> String) {
        if self.told {
            println!("{:>14.6} ms  {}", now.as_secs_f64() * 1000.0, text());
        }
    }

    /// Something was seen that must not be.
    pub(crate) fn add_violation(&mut self, now: Moment, text: String) {
        self.tell(now, || format!("VIOLATION {text}"));
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(text);
        }
    }

    /// Whether nothing was seen that must not be.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// One number for all that happened, and how much it was.
    pub(crate) const fn digest(&self) -> (u64, u64) {
        (self.digest, self.notes)
    }
}
