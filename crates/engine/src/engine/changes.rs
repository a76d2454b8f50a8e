//! Logs automatic changes in a pool: the health of workers, and the fallback.

use std::sync::mpsc::SyncSender;
use std::time::Instant;

use exchange::{HealthNotice, PoolId, WorkerId, WorkerIndex};
use pool::{FallbackReason, HealthCause, HealthState};

use super::fallback_log::{FallbackLine, FallbackState};
use super::{Engine, ServedPool};
use observe::printable::printable;

impl Engine {
    /// Logs the changes in a pool since the last call.
    pub(super) fn log_changes(&mut self, pool: PoolId) {
        let Self { pools, health_notices, .. } = self;
        let served = &mut pools[pool];
        let notices = health_notices.as_ref().map(|to| (pool, to));
        let replaced = &mut self.effects.to_replace;
        served.log_health_changes(self.now, notices, |worker| replaced.push_back((pool, worker)));
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
    fn log_health_changes(
        &mut self,
        now: Instant,
        notices: Option<(PoolId, &SyncSender<HealthNotice>)>,
        mut replace: impl FnMut(WorkerId),
    ) {
        while let Some(change) = self.pool.poll_health_change() {
            if let Some((pool, to)) = notices {
                self.report_health(pool, to, change.index, change.state);
            }
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

impl Engine {
    /// Reports the health of a server that a reload has added: it may have been down when it was removed.
    pub fn report_added(&self, pool: PoolId, name: &str) {
        let (Some(served), Some(to)) = (self.pools.get(pool), &self.health_notices) else { return };
        let added = served.pool.workers().find(|view| view.name == Some(name));
        if let Some(view) = added {
            served.report_health(pool, to, view.index, view.health);
        }
    }
}

impl ServedPool {
    /// Reports the health of a server to other daemons.
    fn report_health(
        &self,
        pool: PoolId,
        to: &SyncSender<HealthNotice>,
        index: WorkerIndex,
        state: HealthState,
    ) {
        let name = self.pool.workers().find(|view| view.index == index);
        let Some(name) = name.and_then(|view| view.name) else { return };
        let Some(target) = self.pool.affinity_target_named(name) else { return };
        let is_up = state == HealthState::Up;
        // If too many wait, others find out by their own checks.
        let _ = to.try_send(HealthNotice { pool, worker: name.to_owned(), target, is_up });
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
