//! The assignment of requests to workers: lanes for arriving requests, and workers for waiting requests.

use std::time::Instant;

use exchange::{Cause, WorkerId};

use super::Pool;
use crate::Queueable;
use crate::affinity::AffinityTarget;
use crate::effect::Effect;
use crate::failed::Failed;
use crate::queue::{EntryInfo, Lane, QueueEntry};
use crate::schedule::{Choice, Eligibility};
use crate::settings::{Gone, Schedule};
use crate::why::PLACES_SEEN;
use crate::workers::State;

/// A slot that is assigned to a batch.
struct Assignment {
    place: u32,
    worker: WorkerId,
    choice: Choice,
    /// The free slots of the first places when the slot was chosen.
    was_free: u64,
}

impl<P: Queueable> Pool<P> {
    /// The worker at a place has changed: updates all sets that depend on it.
    pub(super) fn refresh(&mut self, place: u32) {
        let worker = *self.workers.at(place);
        let record = self.worker_table.at(place);
        let ready = worker.state == State::Ready;
        let (serves, open) = (ready && record.serves(), ready && record.is_open());
        if !ready {
            self.recycle.handle_unready(place);
            self.reservations.clear(place);
        }
        let eligibility = self.eligibility(place, worker.in_use);
        if open {
            self.free.offer(place, &eligibility);
        } else {
            self.free.remove(place);
        }
        let before = self.slot_states.slots(place);
        let slots = if serves { eligibility.slots } else { 0 };
        self.slot_states.set(place, slots, serves && eligibility.is_free(), self.now);
        self.note_update(place);
        if (before > 0) != serves || !open {
            self.decisions.out = None;
        }
        if self.queue.bound(place) > 0 {
            if serves {
                self.call(Lane::Bound(place));
            } else if !self.slot_states.held.contains(&place) {
                self.slot_states.held.push(place);
            }
        }
    }

    /// A slot of a ready worker is free again, and nothing else about the worker has changed.
    pub(super) fn refresh_slots(&mut self, place: u32, in_use: u32) {
        let eligibility = self.eligibility(place, in_use);
        if self.worker_table.at(place).is_open() {
            self.free.offer(place, &eligibility);
        }
        self.slot_states.note_free(place, self.is_free(place));
        if self.queue.bound(place) > 0 {
            self.call(Lane::Bound(place));
        }
    }

    /// Returns the worker at a place as input for a schedule.
    pub(super) fn eligibility(&self, place: u32, in_use: u32) -> Eligibility {
        let eligibility = self.worker_table.eligibility(place, in_use, self.now, &self.settings);
        Eligibility {
            out: self.is_out(place) || self.reservations.is_reserved(place),
            ..eligibility
        }
    }

    /// A request waits in this lane. The lane is registered if its worker has a free slot.
    pub(super) fn call(&mut self, lane: Lane) {
        if let Lane::Bound(place) = lane {
            if self.is_free(place) {
                self.slot_states.call(place);
            } else if self.slot_states.slots(place) == 0 && !self.slot_states.held.contains(&place)
            {
                self.slot_states.held.push(place);
            }
        }
    }

    /// Whether the worker at `place` can receive a request of a client that is bound to it.
    pub(super) fn is_free(&self, place: u32) -> bool {
        let slots = self.slot_states.slots(place);
        slots > 0
            && self.workers.at(place).in_use < slots
            && !self.is_out(place)
            && !self.reservations.is_reserved(place)
    }

    /// Whether the pool's limit allows one more slot in use.
    pub(super) fn may_give(&self) -> bool {
        self.settings.slots_all.is_none_or(|slots| self.workers.slots_in_use() < slots)
    }

    /// Whether any worker can receive a request that waits for any worker.
    pub(super) fn any_free(&self) -> bool {
        self.may_give() && self.free.any()
    }

    /// Returns the lane in which a request waits, if there is room for it.
    pub(super) fn lane_with_room(&mut self, request: &QueueEntry) -> Result<Lane, Cause> {
        if self.is_open() {
            return Err(Cause::Down);
        }
        let QueueEntry { bytes, info, failed, .. } = request;
        let bytes = *bytes;
        let lane = self.lane(info, true)?;
        let lane = self.lane_of_retry(lane, info, failed);
        let room = match lane {
            Lane::Common if self.is_unavailable() => return Err(Cause::Down),
            Lane::Retry if self.has_room(bytes) => true,
            // There is no room to wait for another worker, so any free worker receives the request now.
            Lane::Retry => return self.make_room(bytes).then_some(Lane::Common).ok_or(Cause::Full),
            Lane::Common => self.reserved_for(request, lane).is_some() || self.make_room(bytes),
            Lane::Bound(place) => {
                let at_once = self.queue.bound(place) == 0 && self.is_free(place);
                self.has_room(bytes)
                    || self.reserved_for(request, lane).is_some()
                    || (at_once && self.may_give() && self.secure(place))
            }
        };
        if room { Ok(lane) } else { Err(Cause::Full) }
    }

    /// Whether a slot is free for a request in this lane, so that it need not wait. A request that already waits may
    /// take the slot.
    pub(super) fn has_free_slot_for(&mut self, lane: Lane) -> bool {
        match lane {
            Lane::Bound(place) => self.is_free(place) && self.may_give() && self.secure(place),
            Lane::Common | Lane::Retry => self.secure_any(),
        }
    }

    /// Returns the lane of a request that was dispatched before. If its client does not name a worker itself, this
    /// request may have bound the client to a worker that could not be reached. Then the request may go to any worker.
    pub(super) fn lane_of_returned(&mut self, request: &QueueEntry) -> Result<Lane, Cause> {
        let QueueEntry { info, failed, .. } = request;
        let lane = match self.lane(info, true) {
            Err(Cause::Gone) if info.named.is_none() => Lane::Common,
            lane => lane?,
        };
        Ok(self.lane_of_retry(lane, info, failed))
    }

    /// Returns the lane of a request: the lane of the worker that its client is bound to, or the common lane.
    pub(super) fn lane(&mut self, request: &EntryInfo, note: bool) -> Result<Lane, Cause> {
        let Some(affinity_target) = self.affinity_target_of(request) else {
            return Ok(Lane::Common);
        };
        let place = self.place_of(affinity_target);
        if let Some(place) = place.filter(|place| self.is_worth_waiting(*place)) {
            return Ok(Lane::Bound(place));
        }
        if self.settings.sticky.is_some_and(|sticky| sticky.gone == Gone::Refuse) {
            return Err(Cause::Gone);
        }
        if note {
            self.note_rescheduled(request, place);
        }
        Ok(Lane::Common)
    }

    pub(super) fn affinity_target_of(&mut self, request: &EntryInfo) -> Option<AffinityTarget> {
        if let Some(named) = request.named {
            return Some(AffinityTarget(named));
        }
        self.affinity.as_mut()?.find(self.now, request.key.as_ref()?)
    }

    pub(super) fn place_of(&self, affinity_target: AffinityTarget) -> Option<u32> {
        self.worker_table.place_of(affinity_target, |worker| self.workers.find(worker).is_some())
    }

    /// Whether the worker at a place serves, or may serve soon.
    fn is_worth_waiting(&self, place: u32) -> bool {
        self.slot_states.slots(place) > 0
            || self.held_until(place).is_some_and(|until| until > self.now)
    }

    /// Returns until when requests of bound clients wait for the worker at a place to return. A worker without a name
    /// never returns.
    pub(super) fn held_until(&self, place: u32) -> Option<Instant> {
        let since = self.slot_states.out_since(place)?;
        let hold = if self.worker_table.is_named() {
            self.settings.hold
        } else {
            std::time::Duration::ZERO
        };
        since.checked_add(hold)
    }

    /// Requests whose worker does not return in time wait for any worker, or are rejected.
    pub(super) fn give_up_on_workers(&mut self) {
        if self.slot_states.held.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.slot_states.held);
        held.retain(|place| {
            let waits = self.queue.bound(*place) > 0 && self.slot_states.slots(*place) == 0;
            if waits && !self.is_worth_waiting(*place) {
                self.give_up_on(*place);
                return false;
            }
            waits
        });
        self.slot_states.held = held;
    }

    /// The requests that wait for the worker at this place wait for any worker, or are rejected.
    pub(super) fn give_up_on(&mut self, place: u32) {
        match self.settings.sticky.map(|sticky| sticky.gone) {
            Some(Gone::Refuse) => {
                while let Some((payload, info)) = self.queue.pop(Lane::Bound(place)) {
                    self.refused(payload, &info, Cause::Gone);
                }
            }
            Some(Gone::Reschedule) | None => self.queue.unbind(place),
        }
    }

    /// Dispatches waiting requests while slots are free. Requests of clients that are bound to a free worker and other
    /// requests are ordered by priority and by turns, so that neither group starves.
    pub(super) fn dispatch(&mut self) {
        self.dispatch_retries();
        while self.may_give() {
            self.dispatch_reserved();
            if !self.may_give() {
                return;
            }
            let common = self.free.any() && self.batch_is_due();
            match self.next_lane(common) {
                Some(Lane::Bound(place)) => {
                    if self.secure(place) {
                        self.give(place, Lane::Bound(place), Choice::Bound);
                    }
                }
                Some(_) => self.dispatch_common(),
                None => return,
            }
        }
    }

    /// Returns the lane that is next: one of the lanes whose worker has a free slot, or, if `common`, the common lane.
    fn next_lane(&mut self, common: bool) -> Option<Lane> {
        if self.slot_states.callers.is_empty() {
            return common.then_some(Lane::Common);
        }
        let mut callers = std::mem::take(&mut self.slot_states.callers);
        callers.retain(|&place| {
            let calls = self.queue.bound(place) > 0 && self.is_free(place);
            self.slot_states.slot_states[place as usize].calls = calls;
            calls
        });
        let bound = callers.iter().map(|&place| Lane::Bound(place));
        let next = self.queue.next_lane(common.then_some(Lane::Common).into_iter().chain(bound));
        self.slot_states.callers = callers;
        next
    }

    /// Gives the next requests of the common lane, at least one, to the worker whose turn it is. If the worker's own
    /// lane is next, the worker receives the requests of that lane instead.
    pub(super) fn dispatch_common(&mut self) {
        let (info, _) = self.queue.next(Lane::Common).expect("the caller has seen a request");
        // The client may have been bound since the request arrived, by another of its requests.
        if let Ok(Lane::Bound(place)) = self.lane(&info, false) {
            self.queue.bind_next(place);
            self.call(Lane::Bound(place));
            return;
        }
        let failed = self.queue.next_failed(Lane::Common);
        let (place, choice) = self.next_for(&info, &failed);
        if !self.secure(place) {
            // Other shards use the remaining slots of this worker. Another free worker is tried next.
            return;
        }
        let own = Lane::Bound(place);
        let both = || self.queue.next_lane([Lane::Common, own].into_iter());
        if self.queue.bound(place) > 0 && both() == Some(own) {
            self.give(place, own, Choice::Bound);
        } else {
            self.give(place, Lane::Common, choice);
        }
    }

    /// Returns the worker whose turn it is for this request. At least one slot must be free.
    pub(super) fn next_for(&mut self, info: &EntryInfo, failed: &Failed) -> (u32, Choice) {
        if !failed.is_empty()
            && let Some(other) = self.other_for(info, failed)
        {
            return other;
        }
        let hash = self.hash_of(info);
        self.free.next(&mut self.random, hash).expect("the caller has seen a free slot")
    }

    /// Returns the position of a request on the hash ring.
    pub(super) fn hash_of(&self, info: &EntryInfo) -> Option<u64> {
        let hashes = self.settings.schedule == Schedule::Hash;
        let of_key = || info.key.filter(|_| hashes).map(|key| key.hash());
        info.hash.or_else(of_key)
    }

    /// Whether a request with this number of bytes, for which the common lane has room, need not wait once a slot is
    /// free: no other request waits, and its batch does not wait for more requests.
    pub(super) fn goes_at_once(&self, bytes: usize) -> bool {
        let (batch, limits) = (&self.settings.batch, &self.settings.queue);
        let is_due = batch.wait.is_zero()
            || batch.rows.min(limits.length) <= 1
            || bytes >= batch.bytes.min(limits.bytes);
        is_due && self.queue.is_empty()
    }

    /// Returns the worker at this place for a client that is bound to it, with a token in the cache. `None` if the
    /// request must wait behind others. Its batch never waits for more requests.
    pub(super) fn secure_own(&mut self, place: u32) -> Option<(u32, Choice)> {
        let may = self.queue.is_empty() && self.is_free(place) && self.may_give();
        (may && self.secure(place)).then_some((place, Choice::Bound))
    }

    /// Gives a request that need not wait to the chosen worker.
    pub(super) fn give_at_once(
        &mut self,
        (place, choice): (u32, Choice),
        payload: P,
        info: &EntryInfo,
    ) {
        let assignment = self.begin_batch(place, choice);
        self.hand_over(&assignment, payload, info, true);
        self.recycle.handle_dispatched(place, 1);
    }

    /// Takes a free slot of a worker for a batch. The token of the slot is in the cache.
    fn begin_batch(&mut self, place: u32, choice: Choice) -> Assignment {
        let in_use = self.workers.occupy(place);
        self.spend(place);
        let eligibility = self.eligibility(place, in_use);
        self.free.given(place, &eligibility);
        let worker = self.workers.id(place);
        let was_free = self.slot_states.free;
        self.slot_states.note_free(place, eligibility.is_free());
        self.counts.batches += 1;
        Assignment { place, worker, choice, was_free }
    }

    /// Gives the next requests of a lane to a worker that has a free slot.
    pub(super) fn give(&mut self, place: u32, lane: Lane, choice: Choice) {
        let assignment = self.begin_batch(place, choice);
        let batch = self.settings.batch;
        let (mut rows, mut bytes) = (0, 0_usize);
        let mut next = self.queue.head(lane);
        while let Some((waiting, more)) = next {
            let (payload, info) = self.queue.take(waiting);
            rows += 1;
            bytes = bytes.saturating_add(more);
            let fits = |next: &(u32, usize)| bytes.saturating_add(next.1) <= batch.bytes;
            next = None;
            if rows < batch.rows {
                next = self.queue.head_that_joins(lane).filter(fits);
            }
            self.hand_over(&assignment, payload, &info, next.is_none());
        }
        self.recycle.handle_dispatched(place, u64::from(rows));
    }

    /// Dispatches a request to its worker.
    #[inline]
    fn hand_over(&mut self, assignment: &Assignment, payload: P, info: &EntryInfo, last: bool) {
        let Assignment { place, worker, choice, was_free } = *assignment;
        self.bind(info, place, worker);
        self.note_given(info, worker, choice, was_free);
        self.counts.dispatched += 1;
        self.counts.bound += u64::from(choice == Choice::Bound);
        self.effects.push_back(Effect::Dispatch { worker, payload, last });
    }

    /// Binds the client of a request to this worker.
    fn bind(&mut self, info: &EntryInfo, place: u32, worker: WorkerId) {
        if let (Some(key), Some(affinity)) = (&info.key, &mut self.affinity) {
            affinity.bind(self.now, key, self.worker_table.affinity_target(place, worker));
        }
    }

    /// Checks the invariants of this file.
    pub(super) fn check_slot_states(&self) {
        let (mut slots, mut serving, mut free) = (0, 0, 0);
        for (place, worker) in self.workers.all() {
            let serves = worker.state == State::Ready && self.worker_table.at(place).serves();
            let eligibility =
                self.worker_table.eligibility(place, worker.in_use, self.now, &self.settings);
            assert_eq!(self.slot_states.slots(place), if serves { eligibility.slots } else { 0 });
            slots += u64::from(self.slot_states.slots(place));
            serving += u32::from(serves);
            if place < PLACES_SEEN && self.is_free(place) {
                free |= 1 << place;
            }
            let waits = self.queue.bound(place) > 0;
            let served = !waits || !self.is_free(place) || !self.may_give();
            assert!(served, "a slot is free for somebody who is bound to it");
            assert!(
                !waits || serves || self.slot_states.held.contains(&place),
                "a worker is waited for"
            );
        }
        assert_eq!(
            (slots, serving, free),
            (self.slot_states.slots, self.slot_states.serving, self.slot_states.free)
        );
        if let Some(all) = self.settings.slots_all {
            let given = self.effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. }));
            assert!(!given || self.workers.slots_in_use() <= all, "never over the pool's limit");
        }
    }
}
