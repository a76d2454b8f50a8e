//! Queries that do not change a pool.

use std::time::Instant;

use super::{Phase, Pool};
use exchange::{WorkerId, WorkerIndex};

use crate::Queueable;
use crate::affinity::Affinity;
use crate::fallback::FallbackReason;
use crate::health::HealthState;
use crate::settings::Settings;
use crate::status::{Counts, Gauges, Room, Status, WorkerView};
use crate::why::Decision;
use crate::workers::State;

impl<P: Queueable> Pool<P> {
    /// When [`handle_time`](Self::handle_time) must be called if no event occurs. It is always later than the last
    /// event.
    pub fn next_time(&mut self) -> Option<Instant> {
        if std::mem::take(&mut self.is_changed) {
            self.next_time = self.find_next_time();
        }
        self.next_time
    }

    fn find_next_time(&self) -> Option<Instant> {
        let [advised_at, started_at] = self.sized_at();
        let mut next = sooner(self.recycle.next_time(), sooner(advised_at, started_at));
        if let Some(oldest) = self.queue.oldest() {
            next = sooner(next, oldest.checked_add(self.settings.queue.wait));
            if self.queue.common().0 > 0 {
                next = sooner(next, self.hold_until());
                if self.any_free() {
                    next = sooner(next, oldest.checked_add(self.settings.batch.wait));
                }
            }
        }
        next = sooner(next, self.settles_at());
        for &place in &self.slot_states.held {
            if self.queue.bound(place) > 0 {
                next = sooner(next, self.held_until(place));
            }
        }
        let warms_at = self.worker_table.warms_at(self.now, self.settings.slow_start);
        next = sooner(sooner(next, warms_at), self.looks_at());
        sooner(next, sooner(self.ejected.next_time(), self.fallback.next_time()))
    }

    /// Whether workers are started and stopped according to the load.
    pub(super) const fn is_sized(&self) -> bool {
        match self.phase {
            Phase::Serving => true,
            Phase::Draining => !self.queue.is_empty(),
            Phase::Stopping => false,
        }
    }

    /// The current state.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            queued: self.queue.length(),
            queued_bytes: self.queue.bytes(),
            oldest: self.queue.oldest(),
            starting: self.workers.starting(),
            idle: self.workers.idle(),
            busy: self.workers.busy(),
            retiring: self.workers.ending(),
            slots_in_use: self.workers.slots_in_use(),
            open: self.is_open(),
            next_start: (self.backoff.start_at().filter(|at| *at > self.now))
                .or_else(|| self.backoff.paused_until(self.now)),
            serving: self.slot_states.serving(),
            candidates: self.free.candidates(),
            on_backup: self.free.is_on_backup(),
            fallback: self.fallback.state(),
            fallback_activations: self.fallback.times(),
            bound: self.affinity.as_ref().map_or(0, Affinity::length),
            evicted: self.affinity.as_ref().map_or(0, Affinity::evicted),
        }
    }

    /// Returns the figures for metrics. They are published in every turn, so they must be cheap.
    #[must_use]
    #[inline]
    pub fn gauges(&self) -> Gauges {
        Gauges {
            queued: self.queue.length(),
            queued_bytes: self.queue.bytes(),
            starting: self.workers.starting(),
            idle: self.workers.idle(),
            busy: self.workers.busy(),
            retiring: self.workers.ending(),
            serving: self.slot_states.serving(),
            is_fallback_on: self.fallback.state().is_some(),
            fallback_activations: self.fallback.times(),
            bound: self.affinity.as_ref().map_or(0, Affinity::length),
        }
    }

    /// Returns how much pausable clients may send now. They are not paused if the pool has a fallback for overload, or
    /// while requests are rejected for another reason than a full queue.
    #[must_use]
    pub fn room(&self) -> Room {
        let rejects = self.phase > Phase::Serving || self.is_open() || self.is_unavailable();
        if rejects || self.settings.fallback.is_some() || self.fallback.is_by_operator() {
            return Room::UNLIMITED;
        }
        let limits = &self.settings.queue;
        let requests = limits.pause_length(self.settings.batch);
        if self.queue.is_empty() {
            // A request that is larger than the queue's limit is rejected for that reason.
            return Room { requests, bytes: usize::MAX };
        }
        Room {
            requests: requests.saturating_sub(self.queue.length()),
            bytes: limits.pause_bytes().saturating_sub(self.queue.bytes()),
        }
    }

    /// Returns the number of waiting requests and the number of slots in use.
    #[must_use]
    pub fn usage(&self) -> (u32, u32) {
        (self.queue.length(), self.workers.slots_in_use())
    }

    /// The maximum number of waiting requests.
    #[must_use]
    pub const fn queue_length(&self) -> u32 {
        self.settings.queue.length
    }

    /// Returns the running workers, and named workers that are not running.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView<'_>> {
        let there = |place: &u32| self.worker_table.is_named() || !self.workers.is_vacant(*place);
        self.worker_table.places().filter(there).map(|place| {
            let record = self.worker_table.at(place);
            let runs = !self.workers.is_vacant(place);
            let in_use = if runs { self.workers.at(place).in_use } else { 0 };
            let (weight, weight_set) = record.weights();
            WorkerView {
                index: WorkerIndex::new(place),
                worker: runs.then(|| self.workers.id(place)),
                name: record.name.as_deref(),
                weight,
                weight_set,
                admin_state: record.admin_state,
                health: record.health.state(),
                health_cause: record.health.cause(),
                health_since: record.health_since,
                ejected_until: record.health.next_time(),
                backup: record.is_backup(),
                in_use,
                slots: self.slot_states.slots(place),
                waiting: self.queue.bound(place),
                out: self.out_reason(place),
            }
        })
    }

    /// Returns the name of a worker, if it has one.
    #[must_use]
    pub fn name_at(&self, worker: WorkerIndex) -> Option<&str> {
        let place = self.worker_table.places().nth(worker.get() as usize)?;
        self.worker_table.at(place).name.as_deref()
    }

    /// Returns the health of a worker; `None` when it is gone.
    #[must_use]
    pub fn health_of(&self, worker: WorkerId) -> Option<HealthState> {
        self.workers.find(worker).map(|place| self.worker_table.at(place).health.state())
    }

    /// Returns how often the fallback was switched on other than by an operator, and why the last time.
    #[must_use]
    #[inline]
    pub fn automatic_fallbacks(&self) -> (u64, Option<FallbackReason>) {
        self.fallback.automatic()
    }

    /// Returns why the fallback is on; `None`: it is off.
    #[must_use]
    #[inline]
    pub fn fallback_reason(&self) -> Option<FallbackReason> {
        self.fallback.state().map(|(reason, _)| reason)
    }

    /// Returns the worker that has this index now; `None`: it is not running.
    #[must_use]
    pub fn worker_at(&self, index: WorkerIndex) -> Option<WorkerId> {
        let place = index.get();
        (!self.workers.is_vacant(place)).then(|| self.workers.id(place))
    }

    /// Returns the affinity target for clients of this worker, for a cookie that names it; `None` when the worker is
    /// gone.
    #[must_use]
    pub fn affinity_target(&self, worker: WorkerId) -> Option<u64> {
        let place = self.workers.find(worker)?;
        Some(self.worker_table.affinity_target(place, worker).0)
    }

    /// Like [`affinity_target`](Self::affinity_target), for a named worker, whether it is running or not.
    #[must_use]
    pub fn affinity_target_named(&self, name: &str) -> Option<u64> {
        let affinity_target =
            self.worker_table.named_affinity_target(self.worker_table.find(name)?)?;
        Some(affinity_target.0)
    }

    /// Returns the decisions about one request, the oldest first.
    pub fn why(&self, id: u64) -> impl Iterator<Item = &Decision> {
        self.decisions.of(id)
    }

    /// Returns the recent decisions, the latest first.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.latest()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the current settings, with every number inside its range.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether no request waits and no slot is in use.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.workers.slots_in_use() == 0
    }

    /// Checks every invariant, for tests and simulation.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        self.queue.check();
        self.workers.check();
        let takes_work = |place| {
            if self.workers.is_vacant(place) {
                return None;
            }
            let worker = self.workers.at(place);
            let open = worker.state == State::Ready && self.worker_table.at(place).is_open();
            open.then(|| self.eligibility(place, worker.in_use))
        };
        self.free.check(takes_work);
        self.check_slot_states();
        self.check_reservations();
        self.check_retries();
        self.check_shared();
        self.affinity.iter().for_each(Affinity::check);
        let ready = |place| self.workers.at(place).state == State::Ready;
        self.recycle.check(ready);
        let next_time = self.find_next_time();
        let is_known = self.is_changed || self.next_time == next_time;
        assert!(is_known, "the next time changes with events only");
        assert!(next_time.is_none_or(|at| at > self.now), "nothing due is left undone");
        assert!(!self.is_open() || self.queue.is_empty(), "nobody waits at an open circuit");
    }
}

/// Returns the earlier of two times, if there are two.
fn sooner(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
