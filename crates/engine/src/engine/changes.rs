//! Logs automatic changes in a pool: the health of workers, and the fallback.

use std::time::Instant;

use exchange::{PoolId, WorkerId};
use pool::{FallbackReason, HealthCause, HealthState};

use super::fallback_log::{FallbackLine, FallbackState};
use super::{Engine, ServedPool};
use observe::printable::printable;

impl Engine {
    /// Logs the changes in a pool since the last call.
    pub(super) fn log_changes(&mut self, pool: PoolId) {
        let served = &mut self.pools[pool];
        let replaced = &mut self.effects.to_replace;
        served.log_health_changes(self.now, |worker| replaced.push_back((pool, worker)));
        let fallback = FallbackState::of(&served.pool);
        let pool = &served.name;
        match served.fallback_log.note(fallback, self.now) {
            None => {}
            Some(FallbackLine::Briefly(reason, times)) => {
                tracing::warn!(
                    pool,
                    "fallback was on {times} times for a moment: {}",
                    described(reason)
                );
            }
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
    /// Whether [`Engine::log_changes`] may have anything to log. Called in every turn.
    #[inline]
    pub(super) fn has_changes_to_log(&self) -> bool {
        self.pool.has_health_changes()
            || !self.fallback_log.is_current(FallbackState::of(&self.pool))
    }

    /// Logs which workers receive requests again or no longer, with the reason. `replace` is called for each worker to
    /// replace.
    fn log_health_changes(&mut self, now: Instant, mut replace: impl FnMut(WorkerId)) {
        while let Some(change) = self.pool.poll_health_change() {
            if change.state == HealthState::Ejected {
                self.tallies.count_ejection(change.index);
            }
            let Some(worker) = self.pool.worker_at(change.index) else { continue };
            let mut name = String::new();
            self.write_name(worker, &mut name);
            let cause = match change.cause {
                HealthCause::Checks => {
                    let last = self.tallies.last_check(worker, now);
                    last.map_or_else(
                        || "no check has passed since".to_owned(),
                        |last| printable(last.as_bytes()),
                    )
                }
                cause => cause.as_str().to_owned(),
            };
            match (change.state, change.ejected_for) {
                (HealthState::Up, _) => tracing::info!(worker = name, "serves again: {cause}"),
                (HealthState::Ejected, Some(time)) => {
                    tracing::warn!(worker = name, "is ejected for {time:.1?}: {cause}");
                }
                _ => tracing::warn!(worker = name, "is down: {cause}"),
            }
            if change.state == HealthState::Down && self.traits.replaces_down {
                replace(worker);
            }
        }
    }
}

const fn described(reason: FallbackReason) -> &'static str {
    match reason {
        FallbackReason::Operator => "switched on by an operator",
        FallbackReason::Full => "the queue is full",
        FallbackReason::Waited => "a request waited in the queue for longer than its limit",
        FallbackReason::NoWorker => "no worker can answer",
    }
}
