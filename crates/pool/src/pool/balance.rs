//! Health, operator commands and the fallback: everything that changes which workers may receive requests.

use std::time::{Duration, Instant};

use exchange::{AdminState, BindingChange, BindingUse, Cause, WorkerId, WorkerIndex};

use super::{Phase, Pool, capacity};
use crate::Queueable;
use crate::affinity::Affinity;
use crate::fallback::Load;
use crate::health::{HealthChange, HealthRecord, HealthState};
use crate::queue::{EntryInfo, QueueEntry, Ticket};
use crate::schedule::Choice;
use crate::settings::{Schedule, Sticky};
use crate::worker_table::Control;
use crate::workers::{Move, State};

/// The maximum number of health changes that are kept for a caller that does not poll them.
const HEALTH_CHANGES_MAX: usize = 256;

impl<P: Queueable> Pool<P> {
    /// Applies the workers and limits that the settings declare, and rebuilds what depends on them.
    pub(super) fn declare(&mut self) {
        let settings = &self.settings;
        let waited_for = self.worker_table.places().filter(|place| self.queue.bound(*place) > 0);
        let waited_for: Vec<_> = waited_for
            .map(|place| (place, self.worker_table.named_affinity_target(place)))
            .collect();
        // If several shards serve the pool, a place belongs to the same worker on all of them.
        let is_shared = self.shared.is_some();
        let vacant = |place| !is_shared && self.workers.is_vacant(place);
        let undeclared = self.worker_table.declare(settings, vacant);
        self.apply_pending_updates();
        let schedule = self.schedule();
        let settings = &self.settings;
        self.free.handle_settings(schedule, capacity(settings));
        self.fallback.handle_settings(settings.fallback);
        self.queue.handle_step(settings.priority_step);
        self.decisions.handle_max(settings.decisions);
        self.decisions.out = None;
        match (&mut self.affinity, settings.sticky.map(|sticky| sticky.limits)) {
            (Some(affinity), Some(limits)) => affinity.handle_limits(self.now, limits),
            (affinity, None) => *affinity = None,
            (affinity, Some(limits)) => {
                let secret = (self.random.draw(), self.random.draw());
                *affinity = Some(Affinity::new(limits, self.now, secret));
            }
        }
        if let (Some(affinity), Some(Sticky { shared: true, .. })) =
            (&mut self.affinity, settings.sticky)
        {
            affinity.share();
        }
        let places: Vec<u32> = self.workers.all().map(|(place, _)| place).collect();
        for place in places {
            if self.worker_table.is_named() && self.worker_table.at(place).is_declared() {
                // The worker was declared again while it had requests in flight. It need not leave.
                self.workers.apply(place, Move::Stay, self.now);
            }
            self.refresh(place);
        }
        for place in undeclared {
            if !self.workers.is_vacant(place) {
                self.stop_when_idle(place);
            }
        }
        for (place, affinity_target) in waited_for {
            // No request waits for a worker that is no longer declared, or is given to another worker that has its
            // place now.
            if self.worker_table.named_affinity_target(place) != affinity_target
                || !self.worker_table.at(place).is_declared()
            {
                self.give_up_on(place);
            }
        }
    }

    /// The effective schedule. Round robin becomes weighted if a weight is above 1 or if workers have a slow start,
    /// because a new worker then receives less than its weight.
    fn schedule(&self) -> Schedule {
        let weighs = !self.settings.slow_start.is_zero() || self.worker_table.weighs();
        match self.settings.schedule {
            Schedule::RoundRobin if weighs => Schedule::WeightedRoundRobin,
            schedule => schedule,
        }
    }

    /// A weight has changed. The effective schedule may change with it.
    pub(super) fn follow_weights(&mut self) {
        let schedule = self.schedule();
        if schedule == self.free.schedule() {
            return;
        }
        self.free.handle_settings(schedule, capacity(&self.settings));
        let places: Vec<u32> = self.workers.all().map(|(place, _)| place).collect();
        places.into_iter().for_each(|place| self.refresh(place));
    }

    /// Sends a request that tests a worker. It goes to this worker only, regardless of the worker's health, and it is
    /// never queued. Its slot is released like any other slot.
    ///
    /// # Errors
    /// Returns the request if the worker is not running, is not idle, or must not receive it.
    pub fn handle_probe(
        &mut self,
        now: Instant,
        worker: WorkerId,
        payload: P,
        mut entry: QueueEntry,
    ) -> Result<Ticket, P> {
        self.begin(now);
        entry.info.since = self.now;
        let idle = |pool: &Self, place: u32| {
            let worker = pool.workers.at(place);
            // A worker that is being checked for unrequested output receives no request of another client.
            worker.state == State::Ready
                && worker.in_use == 0
                && !pool.reservations.is_reserved(place)
        };
        let place = self
            .workers
            .find(worker)
            .filter(|place| self.phase == Phase::Serving && self.may_give() && idle(self, *place));
        let result = match place {
            Some(place) if self.secure(place) => {
                self.counts.admitted += 1;
                self.give_at_once((place, Choice::Probed), payload, &entry.info);
                Ok(Ticket::SPENT)
            }
            _ => Err(payload),
        };
        self.turn();
        result
    }

    /// A check of a worker was made.
    pub fn handle_check(&mut self, now: Instant, worker: WorkerId, good: bool) {
        self.begin(now);
        if let Some(place) = self.workers.find(worker) {
            let settings = self.settings.health;
            self.change_health(place, |health, now| health.handle_check(&settings, now, good));
        }
        self.turn();
    }

    /// A worker sent its client the key that identifies the client. The client is bound to the worker by this key.
    pub fn handle_learned_key(&mut self, now: Instant, worker: WorkerId, key: &[u8]) {
        self.begin(now);
        if let (Some(place), Some(affinity)) = (self.workers.find(worker), &mut self.affinity) {
            let affinity_target = self.worker_table.affinity_target(place, worker);
            affinity.bind(self.now, &crate::affinity::Key::new(key), affinity_target);
        }
        self.turn();
    }

    /// Other daemons have bound, used or unbound clients.
    pub fn handle_binding_changes(&mut self, now: Instant, changes: &[BindingChange]) {
        self.begin(now);
        if let Some(affinity) = &mut self.affinity {
            changes.iter().for_each(|change| affinity.adopt(self.now, change));
        }
        self.turn();
    }

    /// Returns what other daemons must learn of the bindings, and forgets it.
    pub fn take_binding_uses(&mut self) -> Vec<BindingUse> {
        self.affinity.as_mut().map(Affinity::take_uses).unwrap_or_default()
    }

    /// Takes back uses that could not be sent.
    pub fn return_binding_uses(&mut self, uses: Vec<BindingUse>) {
        if let Some(affinity) = &mut self.affinity {
            affinity.return_uses(uses);
        }
    }

    /// Uses of bindings that other daemons did not learn because too many waited to be sent.
    #[must_use]
    pub fn binding_uses_dropped(&self) -> u64 {
        self.affinity.as_ref().map_or(0, Affinity::uses_dropped)
    }

    /// A request finished at a worker. `good`: it succeeded. `took`: its duration.
    pub fn handle_result(&mut self, now: Instant, worker: WorkerId, good: bool, took: Duration) {
        let place = self.workers.find(worker);
        let good = good && self.settings.health.slow.is_none_or(|slow| took <= slow);
        let Some(place) = place else { return };
        if good && self.worker_table.at(place).health.is_sound() {
            // Most results are of this kind, and they have no consequences.
            let settings = self.settings.health;
            let now = now.max(self.now);
            self.worker_table.at_mut(place).health.handle_sound_result(&settings, now);
            return;
        }
        self.begin(now);
        let settings = self.settings.health;
        let others = self.free.others(place);
        self.change_health(place, |health, now| health.handle_result(&settings, now, good, others));
        self.turn();
    }

    /// Changes the health of a worker, and carries out the consequences.
    pub(super) fn change_health(
        &mut self,
        place: u32,
        change: impl FnOnce(&mut crate::health::Health, Instant),
    ) {
        let now = self.now;
        let health = &mut self.worker_table.at_mut(place).health;
        let (before, until) = (health.state(), health.next_time());
        change(health, now);
        let (after, up) = (health.state(), health.is_up());
        self.ejected.handle_change(place, until, health.next_time());
        if before == after {
            return;
        }
        let (cause, until) = (health.cause(), health.next_time());
        let ejected_for = until.map(|until| until.saturating_duration_since(now));
        if self.health_changes.len() == HEALTH_CHANGES_MAX {
            self.health_changes.pop_front();
        }
        let index = WorkerIndex::new(place);
        self.health_changes.push_back(HealthChange { index, state: after, cause, ejected_for });
        self.worker_table.at_mut(place).health_since = Some(now);
        self.counts.ejections += u64::from(after == HealthState::Ejected);
        self.counts.unhealthy += u64::from(!up);
        if up {
            self.worker_table.warm_up(place, self.now, self.settings.slow_start);
        }
        self.decisions.out = None;
        if !self.workers.is_vacant(place) {
            self.refresh(place);
        }
    }

    /// Returns whether [`poll_health_change`](Self::poll_health_change) has anything to return.
    #[must_use]
    #[inline]
    pub fn has_health_changes(&self) -> bool {
        !self.health_changes.is_empty()
    }

    /// Returns the next change of a worker's health, in the order in which they happened. Call it after every event
    /// until it returns `None`.
    #[inline]
    pub fn poll_health_change(&mut self) -> Option<HealthChange> {
        self.health_changes.pop_front()
    }

    /// Applies an operator's command to the worker with this name. If workers have no names, `worker` is the number of
    /// a place. Returns `false` if there is no such worker.
    pub fn handle_control(&mut self, now: Instant, worker: &str, control: Control) -> bool {
        self.begin(now);
        let place = self.worker_table.find(worker).or_else(|| {
            let place = worker.parse().ok()?;
            (!self.worker_table.is_named() && !self.workers.is_vacant(place)).then_some(place)
        });
        if let Some(place) = place {
            let record = self.worker_table.at_mut(place);
            match control {
                Control::Weight(weight) => record.set_weight(weight),
                Control::AdminState(admin_state) => record.admin_state = admin_state,
            }
            self.decisions.out = None;
            self.follow_weights();
            if !self.workers.is_vacant(place) {
                self.refresh(place);
            }
        }
        self.turn();
        place.is_some()
    }

    /// An operator switches the fallback on or off.
    pub fn handle_fallback(&mut self, now: Instant, on: bool) {
        self.begin(now);
        let now = self.now;
        self.fallback.handle_operator(now, on);
        self.turn();
    }

    /// Returns the health of the workers with names, for the next daemon.
    #[must_use]
    pub fn health(&self) -> Vec<HealthRecord> {
        let records = self.worker_table.places().map(|place| self.worker_table.at(place));
        records
            .filter_map(|record| Some(record.health.record(record.name.as_deref()?, self.now)))
            .collect()
    }

    /// Restores the health that the previous daemon has recorded. Unknown names are ignored.
    pub fn restore_health(&mut self, now: Instant, records: &[HealthRecord]) {
        self.begin(now);
        for record in records {
            if let Some(place) = self.worker_table.find(&record.name) {
                let restored = crate::health::Health::restored(record, self.now);
                self.change_health(place, |health, _| *health = restored);
            }
        }
        self.turn();
    }

    /// Time has passed: ejections end, and slow starts advance.
    pub(super) fn balance(&mut self) {
        let settings = self.settings.health;
        while let Some(place) = self.ejected.due(self.now) {
            self.change_health(place, |health, now| health.handle_time(&settings, now));
        }
        if !self.worker_table.is_warming() {
            return;
        }
        for place in self.worker_table.warmed(self.now, self.settings.slow_start) {
            if !self.workers.is_vacant(place) {
                self.refresh(place);
            }
        }
    }

    /// Records since when no running worker is available.
    pub(super) fn note_availability(&mut self) {
        let unhealthy = self.workers.ready() > 0 && self.free.candidates() == 0;
        self.unavailable_since = unhealthy.then(|| self.unavailable_since.unwrap_or(self.now));
    }

    /// Whether no running worker is available and the hold time is over.
    pub(super) fn is_unavailable(&self) -> bool {
        self.hold_until().is_some_and(|until| until <= self.now)
    }

    /// Returns until when requests for any worker are held while no worker is available.
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.unavailable_since?.checked_add(self.settings.hold)
    }

    /// Records a rejection, and switches the fallback on if the cause requires it.
    pub(super) fn note_refusal(&mut self, info: &EntryInfo, cause: Cause) {
        self.fallback.handle_refusal(self.now, cause);
        self.note_refused(info, cause);
    }

    /// Updates the fallback with the load after a turn. Returns `true` if this switches it off.
    pub(super) fn leave_fallback(&mut self) -> bool {
        let was_on = self.fallback.is_on();
        if was_on {
            let taken = self.taken() + u64::from(self.queue.length());
            let slots = self.settings.slots_all.map_or(u64::MAX, u64::from);
            let room =
                self.slot_states.slots_all().min(slots) + u64::from(self.settings.queue.length);
            let limit = self.settings.queue.bytes;
            let bytes = (self.queue.bytes() as u64, limit as u64);
            let load = Load {
                taken: &[(taken, room), bytes],
                any_worker: !self.is_open() && self.free.candidates() > 0,
                is_queue_empty: self.queue.is_empty(),
                any_free: self.any_free(),
            };
            self.fallback.handle_load(self.now, &load);
        }
        was_on && !self.fallback.is_on()
    }

    /// Returns why a worker receives no new requests, in the words of `why`; `None` if it receives them.
    pub(super) fn out_reason(&self, place: u32) -> Option<&'static str> {
        let record = self.worker_table.at(place);
        if self.workers.is_vacant(place) {
            return Some(if record.is_declared() { "not running" } else { "no longer declared" });
        }
        match self.workers.at(place).state {
            State::Starting => return Some("starting"),
            State::Leaving | State::Stopping | State::Retiring => return Some("ending"),
            State::Ready | State::Vacant => {}
        }
        if let Some(out) = record.owner_update.and_then(|owner_update| owner_update.out) {
            Some(out)
        } else if !record.is_declared() {
            Some("no longer declared")
        } else if !record.health.is_up() {
            Some(record.health.state().as_str())
        } else if record.admin_state != AdminState::Enabled {
            Some(record.admin_state.as_str())
        } else if record.weight() == 0 {
            Some("weight 0")
        } else if record.is_backup() && !self.free.is_on_backup() {
            Some("backup")
        } else {
            None
        }
    }
}
