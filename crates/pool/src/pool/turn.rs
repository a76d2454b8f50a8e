//! What follows from an event.

use std::time::Instant;

use elastic::{Advice, Load};
use exchange::Cause;

use super::{Phase, Pool};
use crate::Payload;
use crate::effect::Effect;
use crate::workers::Move;

impl<P: Payload> Pool<P> {
    /// The time moves on to `now`: what has waited too long is refused before anything else.
    pub(super) fn begin(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.expire();
        self.backoff.handle_time(self.now, self.pending());
    }

    /// Does everything that is to be done now.
    pub(super) fn turn(&mut self) {
        self.backoff.handle_time(self.now, self.pending());
        if self.is_open() {
            self.refuse_all(Cause::Down);
        }
        self.dispatch();
        self.expire();
        if self.is_sized() {
            self.size();
        }
        if self.phase == Phase::Stopping {
            self.stop_idle();
        }
    }

    /// No worker is ready, and the last ones failed in a row.
    pub(super) fn is_open(&self) -> bool {
        self.workers.ready() == 0 && self.backoff.is_hopeless()
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
        while self.free.any() && !self.queue.is_empty() {
            self.dispatch_batch();
            if self.has_room(bytes) {
                return true;
            }
        }
        // Nobody waits and a slot is free: then the limits do not matter unless the request
        // would have to wait for its batch. It will not: a batch beyond a limit is full.
        self.free.any()
    }

    fn has_room(&self, bytes: usize) -> bool {
        let limits = &self.settings.queue;
        self.queue.length() < limits.length
            && self.queue.bytes().saturating_add(bytes) <= limits.bytes
    }

    /// Whether the oldest requests make a batch that may leave now.
    fn batch_is_due(&self) -> bool {
        let Some(oldest) = self.queue.oldest() else { return false };
        let (batch, limits) = (&self.settings.batch, &self.settings.queue);
        batch.wait.is_zero()
            || self.phase > Phase::Serving
            || self.queue.length() >= batch.rows.min(limits.length)
            || self.queue.bytes() >= batch.bytes.min(limits.bytes)
            || oldest.checked_add(batch.wait).is_some_and(|at| at <= self.now)
    }

    fn dispatch(&mut self) {
        while self.free.any() && self.batch_is_due() {
            self.dispatch_batch();
        }
    }

    /// Gives the oldest requests, at least one, to the worker whose turn it is.
    fn dispatch_batch(&mut self) {
        let place = self.free.next().expect("the caller has seen a free slot");
        let in_use = self.workers.occupy(place);
        self.free.given(place, in_use);
        let worker = self.workers.id(place);
        self.counts.batches += 1;
        let batch = self.settings.batch;
        let (mut rows, mut bytes) = (0, 0_usize);
        while let Some(more) = self.queue.next_bytes() {
            let payload = self.queue.pop().expect("the queue has a next request");
            rows += 1;
            bytes = bytes.saturating_add(more);
            let fits = |next: usize| bytes.saturating_add(next) <= batch.bytes;
            let last = rows == batch.rows || !self.queue.next_bytes().is_some_and(fits);
            self.counts.dispatched += 1;
            self.effects.push_back(Effect::Dispatch { worker, payload, last });
            if last {
                break;
            }
        }
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

    /// Refuses the oldest request.
    fn refuse(&mut self, cause: Cause) {
        let payload = self.queue.pop().expect("the caller has seen a request");
        self.counts.expired += 1;
        self.effects.push_back(Effect::Refuse { payload, cause });
    }

    /// What the policy has to know.
    pub(super) fn load(&self) -> Load {
        let open = self.is_open();
        // A free slot with requests waiting means a batch that is not due.
        let waits = !self.queue.is_empty() && !self.free.any();
        let waiting = if waits { self.workers_worth() } else { 0 };
        Load {
            busy: self.workers.busy(),
            idle: self.workers.idle(),
            starting: self.pending(),
            ending: self.workers.ending() - self.workers.undecided(),
            // While requests are refused nobody waits, and yet somebody must try again.
            waiting: waiting.max(u32::from(open)),
            oldest: self.queue.oldest().filter(|_| waits),
            room: self.backoff.room(self.now, self.pending(), open),
            may_shrink: !self.backoff.in_trouble(),
        }
    }

    /// How many workers what waits could keep busy.
    fn workers_worth(&self) -> u32 {
        let batch = &self.settings.batch;
        let by_rows = self.queue.length().div_ceil(batch.rows);
        let by_bytes = self.queue.bytes() / batch.bytes.max(1);
        let batches = by_rows.max(u32::try_from(by_bytes).unwrap_or(u32::MAX));
        batches.min(self.queue.length()).div_ceil(self.settings.slots)
    }

    /// Follows the policy.
    fn size(&mut self) {
        loop {
            match self.policy.advise(self.now, &self.load()) {
                Advice::Nothing => return,
                Advice::Start(count) => (0..count).for_each(|_| self.start()),
                Advice::Stop => {
                    let place = self.workers.idlest().expect("only an idle worker is one too many");
                    self.stop(place);
                }
            }
        }
    }

    fn start(&mut self) {
        let round = self.backoff.handle_start(self.now);
        let place = self.workers.add(round);
        self.counts.started += 1;
        self.effects.push_back(Effect::Start { worker: self.workers.id(place) });
    }

    /// Tells a worker to stop that has nothing to do.
    pub(super) fn stop(&mut self, place: u32) {
        let worker = self.workers.id(place);
        let stopped = self.workers.apply(place, Move::Stop, self.now);
        assert!(stopped.is_some(), "a worker that has nothing to do can be stopped");
        self.free.remove(place);
        self.backoff.handle_gone(self.now, worker);
        self.counts.stopped += 1;
        self.effects.push_back(Effect::Stop { worker });
    }

    /// Lets go of ready workers beyond `max`, idle ones first.
    pub(super) fn trim(&mut self) {
        while self.workers.ready() > self.settings.sizing.max {
            if let Some(place) = self.workers.idlest() {
                self.stop(place);
            } else if let Some(place) = self.workers.least_busy() {
                self.workers.apply(place, Move::Leave, self.now);
                self.free.remove(place);
            }
        }
    }

    /// The end of the pool: who has nothing to do stops, and what waits for nobody is refused.
    fn stop_idle(&mut self) {
        while let Some(place) = self.workers.idlest() {
            self.stop(place);
        }
        if self.workers.ready() + self.workers.starting() == 0 {
            self.refuse_all(Cause::Draining);
        }
    }
}
