//! The observations of a run: the bytes that the gateway sent, violations, and all events.

use crate::scheduled_event::Moment;
use crate::transcripts::Transcripts;

/// The maximum number of recorded violations. Later ones are usually consequences of these.
const VIOLATIONS_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct Record {
    /// The bytes that the gateway sent.
    pub(crate) transcripts: Transcripts,
    /// The violations.
    pub(crate) violations: Vec<String>,
    /// A digest of all events, and their number.
    digest: u64,
    notes: u64,
    /// Whether events are printed.
    trace: bool,
}

impl Record {
    pub(crate) fn new(trace: bool) -> Self {
        Self {
            transcripts: Transcripts::default(),
            violations: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            notes: 0,
            trace,
        }
    }

    /// Records an event. `words` describes the meaning of `who` and `number`.
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
        self.trace(now, || format!("{words}: {who}, {number}"));
    }

    /// Prints a text for a reader; it is not part of the digest.
    pub(crate) fn trace(&self, now: Moment, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>14.6} ms  {}", now.as_secs_f64() * 1000.0, text());
        }
    }

    /// Records a violation.
    pub(crate) fn add_violation(&mut self, now: Moment, text: String) {
        self.trace(now, || format!("VIOLATION {text}"));
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(text);
        }
    }

    /// Whether no violation was recorded.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns a digest of all events, and their number.
    pub(crate) const fn digest(&self) -> (u64, u64) {
        (self.digest, self.notes)
    }
}
