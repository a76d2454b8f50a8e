//! Whether a connection's own program may be given to another connection after its reset.
//!
//! ```text
//!            reset sent          its reply           silent long enough
//!   owned ──────────────▶ asked ─────────▶ watched ────────────────────▶ passed ──▶ owned
//!                                             │          output            │    next connection
//!                                             └──────────────┬─────────────┘
//!                                                            ▼
//!                                             killed; its pool resets no more
//! ```
//!
//! What a program prints once it is owned again goes to the client that owns it then. So the slot of a
//! program is free only when it has printed nothing for as long as a check of the alignment asks for;
//! for the longest such time if it is one that prints what it is not asked.
//!
//! What it knows: times. What it must never know: a stream, a pool.

use std::time::{Duration, Instant};

use super::latency::{Latency, SILENCE_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A connection's own, or new, or about to end.
    Owned,
    /// It has the request that resets it.
    Sent,
    /// It has answered that, at this time.
    Watched(Instant),
    Passed,
}

#[derive(Debug)]
pub(super) struct Reset {
    state: State,
    latency: Latency,
    /// It printed something that it was not asked, to the client whose own it was.
    is_talkative: bool,
}

impl Reset {
    /// `is_first`: no program of its pool has passed a check.
    pub(super) const fn new(is_first: bool) -> Self {
        Self { state: State::Owned, latency: Latency::new(is_first), is_talkative: false }
    }

    /// It is given a request, which may be the one that resets it.
    pub(super) const fn handle_sent(&mut self, is_reset: bool) {
        self.state = if is_reset { State::Sent } else { State::Owned };
    }

    /// It is to end, and is given to no connection any more: it may print what it likes.
    pub(super) const fn handle_end(&mut self) {
        self.state = State::Owned;
    }

    /// It printed something that it was not asked, to its client.
    pub(super) const fn handle_unasked(&mut self) {
        self.is_talkative = true;
    }

    /// It has answered a request that it had for so long. True when that has reset it: its slot is
    /// not free yet.
    pub(super) fn handle_reply(&mut self, now: Instant, took: Duration) -> bool {
        self.latency.handle_reply(took);
        let is_reset = self.state == State::Sent;
        if is_reset {
            self.state = State::Watched(now);
        }
        is_reset
    }

    /// When it has been silent for long enough.
    pub(super) fn until(&self) -> Option<Instant> {
        let State::Watched(since) = self.state else { return None };
        let silence = if self.is_talkative { SILENCE_MAX } else { self.latency.silence() };
        Some(since + silence)
    }

    /// Time has passed in silence. True when it is for any connection now.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let passed = self.until().is_some_and(|until| until <= now);
        if passed {
            self.state = State::Passed;
            self.latency.handle_passed();
        }
        passed
    }

    /// Whether it has answered its reset, and is nobody's.
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

    /// Answers one request of its client and its reset, each after so long.
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
        reset.handle_unasked();
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
