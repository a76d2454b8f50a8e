//! Whether a session program may be given to another connection after its reset.
//!
//! ```text
//!            reset sent          its reply           silent long enough
//!   owned ──────────────▶ asked ─────────▶ watched ────────────────────▶ passed ──▶ owned
//!                                             │          output            │    next connection
//!                                             └──────────────┬─────────────┘
//!                                                            ▼
//!                                            killed; its pool stops resetting programs
//! ```
//!
//! Output that a program writes after it is given to a new connection goes to the new client. Therefore its slot is
//! freed only when it has written nothing for as long as an alignment check requires. For a program that writes
//! unsolicited output, the maximum such time is required.
//!
//! The module works with times only. It must never depend on a stream or a pool.

use std::time::{Duration, Instant};

use super::latency::{Latency, SILENCE_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It belongs to a connection, is new, or is about to end.
    Owned,
    /// The reset request was sent.
    Sent,
    /// The reset was answered at this time.
    Watched(Instant),
    Passed,
}

#[derive(Debug)]
pub(super) struct Reset {
    state: State,
    latency: Latency,
    /// Whether it wrote unsolicited output to its client.
    is_talkative: bool,
}

impl Reset {
    /// Creates the state of a new program. `is_first`: no program of its pool has passed a check.
    pub(super) const fn new(is_first: bool) -> Self {
        Self { state: State::Owned, latency: Latency::new(is_first), is_talkative: false }
    }

    /// Records that a request is sent, which may be the reset.
    pub(super) const fn handle_sent(&mut self, is_reset: bool) {
        self.state = if is_reset { State::Sent } else { State::Owned };
    }

    /// Records that the program must end. It is given to no other connection, so its output does not matter.
    pub(super) const fn handle_end(&mut self) {
        self.state = State::Owned;
    }

    /// Records unsolicited output to its client.
    pub(super) const fn handle_unsolicited(&mut self) {
        self.is_talkative = true;
    }

    /// Records a reply that took `took`. Returns true if it was the reply to the reset; the slot is not free yet.
    pub(super) fn handle_reply(&mut self, now: Instant, took: Duration) -> bool {
        self.latency.handle_reply(took);
        let is_reset = self.state == State::Sent;
        if is_reset {
            self.state = State::Watched(now);
        }
        is_reset
    }

    /// Returns when it has been silent for long enough.
    pub(super) fn until(&self) -> Option<Instant> {
        let State::Watched(since) = self.state else { return None };
        let silence = if self.is_talkative { SILENCE_MAX } else { self.latency.silence() };
        Some(since + silence)
    }

    /// Handles that time has passed in silence. Returns true if any connection may use the program now.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let passed = self.until().is_some_and(|until| until <= now);
        if passed {
            self.state = State::Passed;
            self.latency.handle_passed();
        }
        passed
    }

    /// Whether it has answered its reset and belongs to no connection.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Watched(_) | State::Passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Answers one request of its client and its reset, each after `took`.
    fn reset_after(reset: &mut Reset, now: Instant, took: Duration) {
        for is_reset in [false, false, true] {
            reset.handle_sent(is_reset);
            assert!(!reset.is_done());
            assert_eq!(reset.handle_reply(now, took), is_reset);
        }
        assert!(reset.is_done());
    }

    #[test]
    fn after_its_reset_a_program_must_be_silent_for_twice_its_latency_within_limits() {
        for (took, silence) in [(ms(0), 10), (ms(20), 40), (ms(700), 100)] {
            let (now, mut reset) = (Instant::now(), Reset::new(false));
            reset_after(&mut reset, now, took);
            assert_eq!(reset.until(), Some(now + ms(silence)));
            assert!(!reset.handle_time(now + ms(silence - 1)));
            assert!(reset.handle_time(now + ms(silence)), "{took:?}");
            assert!(reset.is_done(), "until the next connection asks");
            assert_eq!(reset.until(), None);
            assert!(!reset.handle_time(now + ms(500)), "its slot is freed once");
            reset.handle_sent(false);
            assert!(!reset.is_done());
        }
    }

    #[test]
    fn the_silence_is_the_longest_while_no_latency_is_known_and_for_one_that_speaks_unasked() {
        let (now, mut reset) = (Instant::now(), Reset::new(true));
        reset_after(&mut reset, now, ms(1));
        assert!(!reset.handle_time(now + ms(99)));
        assert!(reset.handle_time(now + ms(100)));
        reset_after(&mut reset, now, ms(1));
        assert!(reset.handle_time(now + ms(10)));
        reset.handle_unsolicited();
        reset_after(&mut reset, now, ms(1));
        assert!(!reset.handle_time(now + ms(99)));
        assert!(reset.handle_time(now + ms(100)));
    }

    #[test]
    fn one_that_is_to_end_need_not_be_silent() {
        let (now, mut reset) = (Instant::now(), Reset::new(false));
        reset_after(&mut reset, now, ms(1));
        reset.handle_end();
        assert!(!reset.is_done() && !reset.handle_time(now + ms(1000)));
    }

    #[test]
    fn nothing_is_due_while_it_is_owned() {
        let (now, mut reset) = (Instant::now(), Reset::new(false));
        reset.handle_sent(false);
        assert!(!reset.handle_reply(now, ms(1)));
        assert_eq!(reset.until(), None);
        assert!(!reset.is_done() && !reset.handle_time(now + ms(1000)));
    }
}
