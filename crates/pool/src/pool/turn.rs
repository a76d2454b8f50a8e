//! The consequences of an event.

use std::time::Instant;

use elastic::{Advice, Load};
use exchange::{Cause, WorkerId};

use super::{Phase, Pool};
use crate::Queueable;
use crate::effect::Effect;
use crate::queue::{EntryInfo, Lane};
use crate::workers::{Move, State};

impl<P: Queueable> Pool<P> {
    /// Moves the time to `now`, and first rejects the requests that have waited too long. Returns `true` if the time
    /// does not move and all consequences of earlier events at this moment were carried out. Then nothing is due
    /// without an event.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        self.is_changed = true;
        if std::mem::take(&mut self.is_at_rest) && now <= self.now {
            return true;
        }
        self.now = self.now.max(now);
        self.expire();
        self.reset_breaker();
        self.balance();
        false
    }

    /// Whether one more request that waits for any worker has no consequences, provided that nothing else remains to be
    /// done: no slot is free, no worker is started or stopped because of load, and the request may wait.
    pub(super) fn is_all_taken(&self) -> bool {
        !self.free.any()
            && self.shared.is_none()
            && !self.reservations.any()
            && self.is_settled()
            && !self.fallback.is_on()
            && !self.settings.queue.wait.is_zero()
    }

    /// Clears the failures of the back-off if enough time has passed.
    fn reset_breaker(&mut self) {
        if self.backoff.in_trouble() {
            self.backoff.handle_time(self.now, self.pending());
        }
    }

    /// Carries out everything that is due now.
    pub(super) fn turn(&mut self) {
        self.reset_breaker();
        self.note_availability();
        self.give_up_on_workers();
        self.settle_retries();
        if self.is_open() {
            self.refuse_all(Cause::Down);
        } else if self.is_unavailable() {
            self.refuse_common(Cause::Down);
        }
        self.dispatch();
        self.expire();
        self.release_unused_tokens();
        self.recycle.handle_time(self.now);
        if self.is_sized() {
            if !self.is_settled() {
                self.size();
            }
            self.replace();
        }
        if self.phase == Phase::Stopping {
            self.stop_idle();
        }
        if self.leave_fallback() && self.is_sized() && !self.is_settled() {
            // A worker that was kept to end the fallback is surplus now.
            self.size();
        }
        self.is_at_rest = true;
    }

    /// Like [`Self::turn`], after an event that only took or released a slot. `at_rest` is the result of
    /// [`Self::begin`]. When many requests and replies arrive at one moment, most of them have no consequences.
    pub(super) fn turn_after_slot(&mut self, at_rest: bool) {
        let follows_nothing = at_rest
            && self.queue.is_empty()
            && self.shared.is_none()
            && self.phase == Phase::Serving
            && self.is_settled()
            && !self.recycle.has_due()
            && !self.fallback.is_on();
        if follows_nothing {
            self.is_at_rest = true;
        } else {
            self.turn();
        }
    }

    /// Whether the circuit breaker is open: no worker is ready, and the last ones failed in a row.
    pub(super) fn is_open(&self) -> bool {
        self.workers.ready() == 0 && self.backoff.is_breaker_open()
    }

    /// The number of workers of which it is not yet known whether they have failed.
    pub(super) const fn pending(&self) -> u32 {
        self.workers.starting() + self.workers.undecided()
    }

    /// Whether there is room for a request with this number of bytes. If a batch that waits for more requests takes the
    /// room, the batch is dispatched.
    pub(super) fn make_room(&mut self, bytes: usize) -> bool {
        if self.has_room(bytes) {
            return true;
        }
        while self.any_free() && self.queue.common().0 > 0 {
            self.dispatch_common();
            if self.has_room(bytes) {
                return true;
            }
        }
        // No request waits, and a slot is free. Then the limits do not matter, unless the request would have to wait
        // until its batch is full. It does not: a batch beyond a limit is full.
        self.secure_any()
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let limits = &self.settings.queue;
        self.queue.length() < limits.length
            && self.queue.bytes().saturating_add(bytes) <= limits.bytes
    }

    /// Whether the oldest requests form a batch that may be dispatched now.
    pub(super) fn batch_is_due(&self) -> bool {
        let (length, bytes) = self.queue.common();
        let Some(oldest) = self.queue.oldest().filter(|_| length > 0) else { return false };
        let (batch, limits) = (&self.settings.batch, &self.settings.queue);
        batch.wait.is_zero()
            || self.phase > Phase::Serving
            || length >= batch.rows.min(limits.length)
            || bytes >= batch.bytes.min(limits.bytes)
            || oldest.checked_add(batch.wait).is_some_and(|at| at <= self.now)
    }

    /// Rejects the requests that have waited too long. The head of the queue is the oldest request.
    fn expire(&mut self) {
        while let Some(oldest) = self.queue.oldest()
            && oldest.checked_add(self.settings.queue.wait).is_some_and(|at| at <= self.now)
        {
            self.refuse(Cause::Waited);
        }
    }

    fn refuse_all(&mut self, cause: Cause) {
        while !self.queue.is_empty() {
            self.refuse(cause);
        }
    }

    /// Rejects the requests that wait for any worker.
    fn refuse_common(&mut self, cause: Cause) {
        while let Some((payload, info)) = self.queue.pop(Lane::Common) {
            self.refused(payload, &info, cause);
        }
    }

    /// Rejects the oldest request.
    pub(super) fn refuse(&mut self, cause: Cause) {
        let (payload, info) = self.queue.pop_oldest().expect("the caller has seen a request");
        self.refused(payload, &info, cause);
    }

    pub(super) fn refused(&mut self, payload: P, info: &EntryInfo, cause: Cause) {
        self.counts.expired += 1;
        self.note_refusal(info, cause);
        self.effects.push_back(Effect::Refuse { payload, cause });
    }

    /// Whether the number of workers is fixed and has been reached, and no worker is ending. Then the policy has
    /// nothing to change, regardless of the load.
    pub(super) fn is_settled(&self) -> bool {
        let coming = self.workers.ready() + self.workers.starting();
        self.workers.ending() == 0 && self.policy.sizing().is_fixed_at(coming)
    }

    /// Returns the input of the sizing policy.
    fn load(&self) -> Load {
        let open = self.is_open();
        let fallback = self.fallback.is_on();
        // While requests are rejected, none of them waits. A worker must still be started, to try again or to end the
        // fallback.
        let wanted = open || fallback && self.workers.ready() == 0;
        // If a slot is free while requests wait, their batch is not due. Requests of bound clients, and requests that
        // the pool's own limit delays, would not be served by another worker.
        let waits =
            self.queue.common().0 + self.queue.retries() > 0 && self.may_give() && !self.free.any();
        let waiting = if waits { self.workers_needed() } else { 0 };
        Load {
            busy: self.workers.busy(),
            idle: self.workers.idle(),
            // A paused place counts as a worker that is slow to start.
            starting: self.pending() + self.backoff.paused(self.now),
            ending: self.workers.ending() - self.workers.undecided(),
            waiting: waiting.max(u32::from(wanted)),
            oldest: self.queue.oldest().filter(|_| waits),
            room: self.backoff.room(self.now, self.pending(), open),
            // While the fallback is on, the last worker that can answer is kept. Otherwise it might be stopped before
            // the load was steady for long enough, and then be started and stopped again without end.
            may_shrink: !(self.backoff.in_trouble() || fallback && self.free.candidates() == 1),
        }
    }

    /// Returns the number of workers that the waiting requests could keep busy.
    fn workers_needed(&self) -> u32 {
        let batch = &self.settings.batch;
        let (length, bytes) = self.queue.common();
        let length = length + self.queue.retries();
        let by_rows = length.div_ceil(batch.rows);
        let by_bytes = bytes / batch.bytes.max(1);
        let batches = by_rows.max(u32::try_from(by_bytes).unwrap_or(u32::MAX));
        batches.min(length).div_ceil(self.settings.slots)
    }

    /// Returns when the policy must be evaluated again, and when another worker may be started.
    pub(super) fn sized_at(&self) -> [Option<Instant>; 2] {
        if !self.is_sized() {
            return [None; 2];
        }
        let advised_at = if self.is_settled() { None } else { self.policy.next_time(&self.load()) };
        [advised_at, self.backoff.next_time(self.now, self.pending())]
    }

    /// Follows the advice of the policy.
    fn size(&mut self) {
        loop {
            match self.policy.advise(self.now, &self.load()) {
                Advice::Nothing => return,
                Advice::Start(count) => (0..count).for_each(|_| _ = self.start()),
                Advice::Stop => {
                    let place =
                        self.workers.longest_idle().expect("only an idle worker is one too many");
                    self.stop(place);
                }
            }
        }
    }

    /// Starts replacements for workers that are due. Meanwhile there may be more workers than `max`, by the number that
    /// is replaced at the same time.
    fn replace(&mut self) {
        // Named workers (servers) are not replaced.
        while self.recycle.has_due()
            && !self.worker_table.is_named()
            && self.recycle.wants_replacement(self.workers.ready())
            && self.backoff.room(self.now, self.pending(), self.is_open()) > 0
        {
            let worker = self.start();
            self.recycle.handle_start(worker);
        }
    }

    /// One worker that is due leaves, because its replacement is ready.
    pub(super) fn stop_one_due(&mut self) {
        if let Some(place) = self.recycle.take() {
            self.counts.recycled += 1;
            self.stop_when_idle(place);
        }
    }

    fn start(&mut self) -> WorkerId {
        let round = self.backoff.handle_start(self.now);
        let place = if self.worker_table.is_named() {
            let place = self.worker_table.vacant(|place| self.workers.is_vacant(place));
            let place = place.expect("never more workers than are declared");
            self.workers.add_at(place, round);
            place
        } else {
            self.workers.add(round)
        };
        self.worker_table.handle_start(place, &self.settings.health);
        self.counts.started += 1;
        let worker = self.workers.id(place);
        self.effects.push_back(Effect::Start { worker });
        worker
    }

    /// Stops an idle worker.
    pub(super) fn stop(&mut self, place: u32) {
        let worker = self.workers.id(place);
        let stopped = self.workers.apply(place, Move::Stop, self.now);
        assert!(stopped.is_some(), "a worker that has nothing to do can be stopped");
        self.refresh(place);
        self.backoff.handle_gone(self.now, worker);
        self.counts.stopped += 1;
        self.effects.push_back(Effect::Stop { worker });
    }

    /// Stops surplus ready workers, idle ones first. A busy one leaves.
    pub(super) fn trim(&mut self) {
        while self.policy.excess(self.workers.ready()) > 0 {
            if let Some(place) = self.workers.longest_idle() {
                self.stop(place);
            } else if let Some(place) = self.workers.least_busy() {
                self.stop_when_idle(place);
            }
        }
    }

    /// Stops a worker that is no longer needed as soon as it is idle.
    pub(super) fn stop_when_idle(&mut self, place: u32) {
        let worker = self.workers.at(place);
        if worker.state == State::Ready && worker.in_use == 0 {
            self.stop(place);
        } else if worker.state == State::Ready {
            self.workers.apply(place, Move::Leave, self.now);
            self.refresh(place);
        }
    }

    /// Ends the pool: stops idle workers, and rejects waiting requests when no worker is left.
    fn stop_idle(&mut self) {
        // A reserved worker will soon have a free slot for the waiting requests.
        if self.reservations.any() && !self.queue.is_empty() {
            return;
        }
        while let Some(place) = self.workers.longest_idle() {
            self.stop(place);
        }
        if self.workers.ready() + self.workers.starting() == 0 {
            self.refuse_all(Cause::Draining);
        }
    }
}
