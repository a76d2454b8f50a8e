//! Rate limit of log lines about a pool's fallback.

use std::time::{Duration, Instant};

use pool::FallbackReason;

/// The maximum number of changes logged per second. A pool without `steady` may change with every request.
const LINES_MAX: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

/// The last logged state of a pool's fallback.
#[derive(Debug, Default)]
pub(super) struct FallbackLog {
    /// The reason that it was on; `None`: it was off.
    reason: Option<FallbackReason>,
    since: Option<Instant>,
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
}

impl FallbackLog {
    /// Takes the state after an event, and returns the line to log. A change that exceeds the rate is logged later,
    /// if it still holds.
    #[inline]
    pub(super) fn note(
        &mut self,
        reason: Option<FallbackReason>,
        now: Instant,
    ) -> Option<FallbackLine> {
        // A change by an operator was logged with the command.
        let reason = reason.filter(|reason| *reason != FallbackReason::Operator);
        if reason == self.reason { None } else { self.note_change(reason, now) }
    }

    fn note_change(
        &mut self,
        reason: Option<FallbackReason>,
        now: Instant,
    ) -> Option<FallbackLine> {
        if self.second.is_none_or(|begun| now.saturating_duration_since(begun) >= SECOND) {
            self.second = Some(now);
            self.lines = 0;
        }
        if self.lines == LINES_MAX {
            return None;
        }
        self.lines += 1;
        self.reason = reason;
        let since = self.since.replace(now);
        Some(match reason {
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
        assert_eq!(log.note(None, at(0)), None, "it is off from the start");
        assert_eq!(log.note(Some(FallbackReason::Operator), at(0)), None, "the order was logged");
        let full = Some(FallbackReason::Full);
        assert_eq!(log.note(full, at(0)), Some(FallbackLine::On(FallbackReason::Full)));
        assert_eq!(log.note(full, at(10)), None);
        let off = FallbackLine::Off(Some(Duration::from_millis(20)));
        assert_eq!(log.note(None, at(20)), Some(off));
        for round in 0..100 {
            log.note([full, None][round % 2], at(30));
        }
        assert_eq!(log.lines, LINES_MAX);
        log.note(None, at(1500));
        assert_eq!(log.reason, None, "what still holds is logged later");
    }
}
