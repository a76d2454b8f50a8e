//! How long a program has written nothing while it owed a reply.
//!
//! ```text
//!   owes       [======]        [===]   [=========]
//!              sent,  cancelled …      sent: no byte arrived in any of them, and now the limit is reached
//!   passed     |------|        |---|   |---|  = deadline
//! ```
//!
//! If each client cancels its request before its deadline, the deadlines of requests do not detect a program that
//! hangs. Time counts only while a reply is owed: a program need not answer cancelled requests, and an idle program
//! need not write anything.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Silence {
    /// The time since which it owes a reply without a pause; `None`: it owes none.
    since: Option<Instant>,
    /// The silence before `since`.
    passed: Duration,
}

impl Silence {
    /// Records that it owes a reply from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Records that it owes nothing any more, or that its output is not read, and that it wrote nothing.
    pub(super) fn pause(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.passed += now.saturating_duration_since(since);
        }
    }

    /// Records that it wrote something; `owes`: it owes further replies.
    pub(super) fn end(&mut self, now: Instant, owes: bool) {
        *self = Self { since: owes.then_some(now), passed: Duration::ZERO };
    }

    /// Returns when it has been silent for `limit`.
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
