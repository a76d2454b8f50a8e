//! Which changes of a pool's fallback are logged.

use std::time::{Duration, Instant};

use pool::SorryReason;

/// Changes of the fallback that are logged in a second; a pool without `steady` may change at every request.
const LINES_MAX: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

/// What was logged of a pool's fallback last.
#[derive(Debug, Default)]
pub(super) struct FallbackLog {
    /// Why it was on; none: it was off.
    reason: Option<SorryReason>,
    since: Option<Instant>,
    /// When the present second began, and how many lines were written in it.
    second: Option<Instant>,
    lines: u32,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FallbackLine {
    On(SorryReason),
    /// It was on for so long.
    Off(Option<Duration>),
}

impl FallbackLog {
    /// The state of the fallback after an event; gives what is to be logged. A change that is not logged
    /// now, because there were too many, is logged later if it still holds.
    #[inline]
    pub(super) fn note(
        &mut self,
        reason: Option<SorryReason>,
        now: Instant,
    ) -> Option<FallbackLine> {
        // By hand it was logged with the order.
        let reason = reason.filter(|reason| *reason != SorryReason::Hand);
        if reason == self.reason { None } else { self.note_change(reason, now) }
    }

    fn note_change(&mut self, reason: Option<SorryReason>, now: Instant) -> Option<FallbackLine> {
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
        assert_eq!(log.note(Some(SorryReason::Hand), at(0)), None, "the order was logged");
        let full = Some(SorryReason::Full);
        assert_eq!(log.note(full, at(0)), Some(FallbackLine::On(SorryReason::Full)));
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
