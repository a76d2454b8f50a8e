//! What follows from an event.

use std::time::Instant;

use elastic::{Advice, Load};
use exchange::{Cause, WorkerId};

use super::{Phase, Pool};
use crate::Queueable;
use crate::effect::Effect;
use crate::queue::{EntryInfo, Lane};
use crate::workers::{Move, State};

impl<P: Queueable> Pool<P> {
    /// The time moves on to `now`: what has waited too long is refused before anything else. True when
    /// it does not, and all that followed from what happened at this moment before was done: then
    /// nothing is due by itself.
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

    /// Whether nothing follows from one more that waits for any worker, where nothing else was left
    /// to be done: no slot is free, nobody is started or stopped by need, and it has time.
    pub(super) fn is_all_taken(&self) -> bool {
        !self.free.any()
            && self.shared.is_none()
            && !self.reservations.any()
            && self.is_settled()
            && !self.sorry.is_on()
            && !self.settings.queue.wait.is_zero()
    }

    /// Failures are forgiven when it is time to.
    fn reset_breaker(&mut self) {
        if self.backoff.in_trouble() {
            self.backoff.handle_time(self.now, self.pending());
        }
    }

    /// Does everything that is to be done now.
    pub(super) fn turn(&mut self) {
        self.reset_breaker();
        self.note_fitness();
        self.give_up_on_workers();
        self.settle_retries();
        if self.is_open() {
            self.refuse_all(Cause::Down);
        } else if self.is_unfit() {
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
            // Who was kept for its sake is surplus now.
            self.size();
        }
        self.is_at_rest = true;
    }

    /// As [`Self::turn`], where nothing happened but that a slot was taken or is free again; `at_rest` is
    /// what [`Self::begin`] said. Of many requests and replies at one moment nothing follows for most.
    pub(super) fn turn_after_slot(&mut self, at_rest: bool) {
        let follows_nothing = at_rest
            && self.queue.is_empty()
            && self.shared.is_none()
            && self.phase == Phase::Serving
            && self.is_settled()
            && !self.recycle.has_due()
            && !self.sorry.is_on();
        if follows_nothing {
            self.is_at_rest = true;
        } else {
            self.turn();
        }
    }

    /// No worker is ready, and the last ones failed in a row.
    pub(super) fn is_open(&self) -> bool {
        self.workers.ready() == 0 && self.backoff.is_breaker_open()
    }

    /// Workers of which is not known yet whether they are any good.
    pub(super) const fn pending(&self) -> u32 {
        self.workers.starting() + self.workers.undecided()
    }

    /// Whether a request of so many bytes can be taken in. Sends off a batch that waits for more
    /// if that makes the room.
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
        // Nobody waits and a slot is free: then the limits do not matter unless the request
        // would have to wait for its batch. It will not: a batch beyond a limit is full.
        self.secure_any()
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let limits = &self.settings.queue;
        self.queue.length() < limits.length
            && self.queue.bytes().saturating_add(bytes) <= limits.bytes
    }

    /// Whether the oldest requests make a batch that may leave now.
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

    /// Refuses what has waited too long. The head of the queue is the oldest.
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

    /// Refuses those that wait for any worker.
    fn refuse_common(&mut self, cause: Cause) {
        while let Some((payload, info)) = self.queue.pop(Lane::Common) {
            self.refused(payload, &info, cause);
        }
    }

    /// Refuses the oldest request.
    pub(super) fn refuse(&mut self, cause: Cause) {
        let (payload, info) = self.queue.pop_oldest().expect("the caller has seen a request");
        self.refused(payload, &info, cause);
    }

    pub(super) fn refused(&mut self, payload: P, info: &EntryInfo, cause: Cause) {
        self.counts.expired += 1;
        self.note_refusal(info, cause);
        self.effects.push_back(Effect::Refuse { payload, cause });
    }

    /// There are as many workers as there are ever to be, and none that ends: whatever the load, the
    /// policy has nothing to say.
    pub(super) fn is_settled(&self) -> bool {
        let coming = self.workers.ready() + self.workers.starting();
        self.workers.ending() == 0 && self.policy.sizing().is_fixed_at(coming)
    }

    /// What the policy has to know.
    fn load(&self) -> Load {
        let open = self.is_open();
        let sorry = self.sorry.is_on();
        // While requests are refused nobody waits, and yet somebody must try again, or be there for
        // the pool to be sorry no longer.
        let wanted = open || sorry && self.workers.ready() == 0;
        // A free slot with requests waiting means a batch that is not due. Those that are bound,
        // or that the pool's own limit holds back, would not be served by another worker.
        let waits =
            self.queue.common().0 + self.queue.again() > 0 && self.may_give() && !self.free.any();
        let waiting = if waits { self.workers_worth() } else { 0 };
        Load {
            busy: self.workers.busy(),
            idle: self.workers.idle(),
            // A place that is paused has a worker that takes so long to start.
            starting: self.pending() + self.backoff.paused(self.now),
            ending: self.workers.ending() - self.workers.undecided(),
            waiting: waiting.max(u32::from(wanted)),
            oldest: self.queue.oldest().filter(|_| waits),
            room: self.backoff.room(self.now, self.pending(), open),
            // The last one that can answer stays as long as the pool is sorry: else it might rest
            // sooner than things are steady, and again, for ever.
            may_shrink: !(self.backoff.in_trouble() || sorry && self.free.candidates() == 1),
        }
    }

    /// How many workers what waits could keep busy.
    fn workers_worth(&self) -> u32 {
        let batch = &self.settings.batch;
        let (length, bytes) = self.queue.common();
        let length = length + self.queue.again();
        let by_rows = length.div_ceil(batch.rows);
        let by_bytes = bytes / batch.bytes.max(1);
        let batches = by_rows.max(u32::try_from(by_bytes).unwrap_or(u32::MAX));
        batches.min(length).div_ceil(self.settings.slots)
    }

    /// When the policy is to be asked again, and when another worker may be started.
    pub(super) fn sized_at(&self) -> [Option<Instant>; 2] {
        if !self.is_sized() {
            return [None; 2];
        }
        let advised_at = if self.is_settled() { None } else { self.policy.next_time(&self.load()) };
        [advised_at, self.backoff.next_time(self.now, self.pending())]
    }

    /// Follows the policy.
    fn size(&mut self) {
        loop {
            match self.policy.advise(self.now, &self.load()) {
                Advice::Nothing => return,
                Advice::Start(count) => (0..count).for_each(|_| _ = self.start()),
                Advice::Stop => {
                    let place = self.workers.idlest().expect("only an idle worker is one too many");
                    self.stop(place);
                }
            }
        }
    }

    /// Starts others in place of workers that are due. There may be more than `max` meanwhile, by as
    /// many as are replaced at once.
    fn replace(&mut self) {
        // Servers are who they are.
        while self.recycle.has_due()
            && !self.worker_table.is_named()
            && self.recycle.wants_replacement(self.workers.ready())
            && self.backoff.room(self.now, self.pending(), self.is_open()) > 0
        {
            let worker = self.start();
            self.recycle.handle_start(worker);
        }
    }

    /// One that is due leaves: another is ready in its place.
    pub(super) fn let_one_go(&mut self) {
        if let Some(place) = self.recycle.take() {
            self.counts.recycled += 1;
            self.let_go(place);
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

    /// Tells a worker to stop that has nothing to do.
    pub(super) fn stop(&mut self, place: u32) {
        let worker = self.workers.id(place);
        let stopped = self.workers.apply(place, Move::Stop, self.now);
        assert!(stopped.is_some(), "a worker that has nothing to do can be stopped");
        self.refresh(place);
        self.backoff.handle_gone(self.now, worker);
        self.counts.stopped += 1;
        self.effects.push_back(Effect::Stop { worker });
    }

    /// Lets go of ready workers that are too many, idle ones first.
    pub(super) fn trim(&mut self) {
        while self.policy.beyond(self.workers.ready()) > 0 {
            if let Some(place) = self.workers.idlest() {
                self.stop(place);
            } else if let Some(place) = self.workers.least_busy() {
                self.let_go(place);
            }
        }
    }

    /// A worker that is no longer wanted stops as soon as it has nothing to do.
    pub(super) fn let_go(&mut self, place: u32) {
        let worker = self.workers.at(place);
        if worker.state == State::Ready && worker.in_use == 0 {
            self.stop(place);
        } else if worker.state == State::Ready {
            self.workers.apply(place, Move::Leave, self.now);
            self.refresh(place);
        }
    }

    /// The end of the pool: who has nothing to do stops, and what waits for nobody is refused.
    fn stop_idle(&mut self) {
        // A worker that is kept has a free slot soon for what waits.
        if self.reservations.any() && !self.queue.is_empty() {
            return;
        }
        while let Some(place) = self.workers.idlest() {
            self.stop(place);
        }
        if self.workers.ready() + self.workers.starting() == 0 {
            self.refuse_all(Cause::Draining);
        }
    }
}
