//! Rate limit of log lines about a pool's fallback.

use std::time::{Duration, Instant};

use pool::{FallbackReason, Pool, Queueable};

/// The maximum number of changes logged per second. A pool without `steady` may change with every request.
const LINES_MAX: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

/// The state of a pool's fallback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FallbackState {
    /// Why it is on; `None`: it is off.
    reason: Option<FallbackReason>,
    /// How often it was switched on other than by an operator, and why the last time.
    activations: u64,
    last: Option<FallbackReason>,
}

impl FallbackState {
    #[inline]
    pub(super) fn of<P: Queueable>(pool: &Pool<P>) -> Self {
        // A change by an operator is logged with the command.
        let reason = pool.fallback_reason().filter(|reason| *reason != FallbackReason::Operator);
        let (activations, last) = pool.automatic_fallbacks();
        Self { reason, activations, last }
    }
}

/// The last logged state of a pool's fallback.
#[derive(Debug, Default)]
pub(super) struct FallbackLog {
    /// The reason that it was on; `None`: it was off.
    reason: Option<FallbackReason>,
    /// How often it had been switched on.
    activations: u64,
    since: Option<Instant>,
    /// When [`FallbackLine::Briefly`] was logged last.
    briefly: Option<Instant>,
    /// The start of the current second, and the number of lines in it.
    second: Option<Instant>,
    lines: u32,
}

/// A log line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FallbackLine {
    On(FallbackReason),
    /// The fallback is off, after this time.
    Off(Option<Duration>),
    /// It was on for the reason, and is off again, this many times within turns of the loop. At most once per second.
    Briefly(FallbackReason, u64),
}

impl FallbackLog {
    /// Whether [`note`](Self::note) has nothing to log for this state.
    #[inline]
    pub(super) fn is_current(&self, state: FallbackState) -> bool {
        state.reason == self.reason && state.activations == self.activations
    }

    /// Takes the state after a turn, and returns the line to log. A change that exceeds the rate is logged later, if it
    /// still holds.
    pub(super) fn note(&mut self, state: FallbackState, now: Instant) -> Option<FallbackLine> {
        if state.reason != self.reason {
            return self.note_change(state, now);
        }
        let missed = state.activations - self.activations;
        let reason = state.last.filter(|_| missed > 0 && state.reason.is_none())?;
        let is_over = |since: Instant| now.saturating_duration_since(since) >= SECOND;
        if !self.briefly.is_none_or(is_over) {
            return None;
        }
        (self.briefly, self.activations) = (Some(now), state.activations);
        Some(FallbackLine::Briefly(reason, missed))
    }

    fn note_change(&mut self, state: FallbackState, now: Instant) -> Option<FallbackLine> {
        if self.second.is_none_or(|begun| now.saturating_duration_since(begun) >= SECOND) {
            self.second = Some(now);
            self.lines = 0;
        }
        if self.lines == LINES_MAX {
            return None;
        }
        self.lines += 1;
        (self.reason, self.activations) = (state.reason, state.activations);
        let since = self.since.replace(now);
        Some(match state.reason {
            Some(reason) => FallbackLine::On(reason),
            None => FallbackLine::Off(since.map(|since| now.saturating_duration_since(since))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_logged_once_and_not_more_than_a_few_times_a_second() {
        let (mut log, start) = (FallbackLog::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let full = FallbackReason::Full;
        let on = |activations| FallbackState { reason: Some(full), activations, last: Some(full) };
        let off = |activations| FallbackState { reason: None, activations, last: Some(full) };
        assert_eq!(log.note(FallbackState::default(), at(0)), None, "it is off from the start");
        assert_eq!(log.note(on(1), at(0)), Some(FallbackLine::On(full)));
        assert_eq!(log.note(on(1), at(10)), None);
        let lasted = FallbackLine::Off(Some(Duration::from_millis(20)));
        assert_eq!(log.note(off(1), at(20)), Some(lasted));
        for round in 1..50 {
            log.note(on(1 + round), at(30));
            log.note(off(1 + round), at(30));
        }
        assert_eq!(log.lines, LINES_MAX);
        log.note(off(50), at(1500));
        assert_eq!(log.reason, None, "what still holds is logged later");
    }

    #[test]
    fn a_fallback_that_ends_in_the_turn_that_switched_it_on_is_logged_once_a_second() {
        let (mut log, start) = (FallbackLog::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let off = |activations| FallbackState {
            activations,
            last: Some(FallbackReason::Full),
            ..FallbackState::default()
        };
        let briefly = |times| Some(FallbackLine::Briefly(FallbackReason::Full, times));
        assert_eq!(log.note(off(1), at(0)), briefly(1));
        for round in 2..200 {
            assert!(!log.is_current(off(round)));
            assert_eq!(log.note(off(round), at(round)), None);
        }
        assert_eq!(log.note(off(200), at(1000)), briefly(199));
        assert!(log.is_current(off(200)));
    }
}
