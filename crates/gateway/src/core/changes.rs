//! What changes by itself in a pool is logged: which workers are given requests, and whether the
//! fallback is on.

use exchange::{PoolId, WorkerId};
use std::time::{Duration, Instant};

use pool::{HealthCause, HealthState, SorryReason};

use super::{Core, ServedPool};
use crate::printable::printable;

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
enum FallbackLine {
    On(SorryReason),
    /// It was on for so long.
    Off(Option<Duration>),
}

impl FallbackLog {
    /// The state of the fallback after an event; gives what is to be logged. A change that is not logged
    /// now, because there were too many, is logged later if it still holds.
    fn note(&mut self, reason: Option<SorryReason>, now: Instant) -> Option<FallbackLine> {
        // By hand it was logged with the order.
        let reason = reason.filter(|reason| *reason != SorryReason::Hand);
        if reason == self.reason {
            return None;
        }
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

impl Core {
    /// Logs what has changed in a pool since the last call.
    pub(super) fn log_changes(&mut self, pool: PoolId) {
        let served = &mut self.pools[pool];
        served.log_health_changes(self.now, |worker| self.used_up.push_back((pool, worker)));
        let reason = served.pool.sorry_reason();
        let pool = &served.name;
        match served.fallback_log.note(reason, self.now) {
            None => {}
            Some(FallbackLine::On(reason)) => {
                tracing::warn!(pool, "fallback is on: {}", described(reason));
            }
            Some(FallbackLine::Off(Some(time))) => {
                tracing::info!(pool, "fallback is off after {time:.1?}");
            }
            Some(FallbackLine::Off(None)) => tracing::info!(pool, "fallback is off"),
        }
    }
}

impl ServedPool {
    /// Logs which workers are given requests again, or no longer, and why. `replace` is called for each that is to
    /// be replaced.
    fn log_health_changes(&mut self, now: Instant, mut replace: impl FnMut(WorkerId)) {
        while let Some(change) = self.pool.poll_health_change() {
            if change.state == HealthState::Ejected {
                self.tallies.count_ejection(change.place as usize);
            }
            let Some(worker) = self.pool.worker_at(change.place) else { continue };
            let mut name = String::new();
            self.workers.write_name(&self.name, worker, &mut name);
            let cause = match change.cause {
                HealthCause::Checks => {
                    let checks = self.checks.as_ref();
                    let last = checks.and_then(|checks| checks.last(worker.index(), now));
                    last.map_or_else(
                        || "no check has passed since".to_owned(),
                        |last| printable(last.text.as_bytes()),
                    )
                }
                cause => cause.word().to_owned(),
            };
            match (change.state, change.ejected_for) {
                (HealthState::Up, _) => tracing::info!(worker = name, "serves again: {cause}"),
                (HealthState::Ejected, Some(time)) => {
                    tracing::warn!(worker = name, "is ejected for {time:.1?}: {cause}");
                }
                _ => tracing::warn!(worker = name, "is down: {cause}"),
            }
            if change.state == HealthState::Down && self.workers.replaces_who_is_down() {
                replace(worker);
            }
        }
    }
}

const fn described(reason: SorryReason) -> &'static str {
    match reason {
        SorryReason::Hand => "switched on by an operator",
        SorryReason::Full => "the queue is full",
        SorryReason::Waited => "a request waited in the queue for longer than its limit",
        SorryReason::NoWorker => "no worker can answer",
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
