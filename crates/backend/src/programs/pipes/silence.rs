//! How long a program has said nothing at all while it owed something.
//!
//! ```text
//!   owes       [======]        [===]   [=========]
//!              asked, taken    …       asked: no byte came meanwhile, and now it is too long
//!              back
//!   passed     |------|        |---|   |---|  = deadline
//! ```
//!
//! The deadline of a request does not find a program that hangs where each client takes its request
//! back before that. Time counts only while something is owed: a program need not answer what was
//! taken back, and one that is asked nothing need not speak.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Since when, if it owes something now.
    since: Option<Instant>,
    /// How long it was silent before.
    passed: Duration,
}

impl Silence {
    /// It owes something from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// It owes nothing any more, or its output is not read, and has said nothing.
    pub(super) fn pause(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.passed += now.saturating_duration_since(since);
        }
    }

    /// It said something, and may owe more.
    pub(super) fn end(&mut self, now: Instant, owes: bool) {
        *self = Self { since: owes.then_some(now), passed: Duration::ZERO };
    }

    /// When it has been silent for so long.
    pub(super) fn until(&self, limit: Duration) -> Option<Instant> {
        self.since?.checked_add(limit.saturating_sub(self.passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_is_taken_back_again_and_again_adds_up() {
        let (start, mut silence) = (Instant::now(), Silence::default());
        for round in 0..3 {
            silence.begin(start + ms(round * 1000));
            assert_eq!(silence.until(ms(50)), Some(start + ms(round * 1000 + 50 - round * 20)));
            silence.pause(start + ms(round * 1000 + 20));
            assert_eq!(silence.until(ms(50)), None, "it owes nothing");
        }
        silence.begin(start + ms(9000));
        assert_eq!(silence.until(ms(50)), Some(start + ms(9000)), "it had its time");
    }

    #[test]
    fn a_byte_ends_it() {
        let (start, mut silence) = (Instant::now(), Silence::default());
        silence.begin(start);
        silence.begin(start + ms(10));
        assert_eq!(silence.until(ms(50)), Some(start + ms(50)), "since the first of them");
        silence.end(start + ms(40), true);
        assert_eq!(silence.until(ms(50)), Some(start + ms(90)));
        silence.end(start + ms(60), false);
        assert_eq!(silence.until(ms(50)), None);
        silence.begin(start + ms(70));
        assert_eq!(silence.until(ms(50)), Some(start + ms(120)), "anew");
    }
}
