//! Who is given what: lanes of arriving requests, and workers for those that wait.

use std::time::Instant;

use exchange::{Cause, WorkerId};

use super::Pool;
use crate::Payload;
use crate::affinity::Berth;
use crate::effect::Effect;
use crate::failed::Failed;
use crate::queue::{Entry, Facts, Lane};
use crate::schedule::{Choice, Standing};
use crate::settings::{Gone, Schedule};
use crate::why::PLACES_SEEN;
use crate::workers::State;

/// A slot that a batch is given.
struct Gift {
    place: u32,
    worker: WorkerId,
    choice: Choice,
    /// Free slots of the first places when it was chosen.
    was_free: u64,
}

impl<P: Payload> Pool<P> {
    /// The worker at a place changed: brings all sets that know of it in line.
    pub(super) fn refresh(&mut self, place: u32) {
        let worker = *self.workers.at(place);
        let profile = self.roster.at(place);
        let ready = worker.state == State::Ready;
        let (serves, open) = (ready && profile.serves(), ready && profile.is_open());
        if !ready {
            self.recycle.handle_unready(place);
            self.kept.clear(place);
        }
        let standing = self.standing(place, worker.in_use);
        if open {
            self.free.offer(place, &standing);
        } else {
            self.free.remove(place);
        }
        let before = self.seats.slots(place);
        let slots = if serves { standing.slots } else { 0 };
        self.seats.set(place, slots, serves && standing.is_free(), self.now);
        self.note_news(place);
        if (before > 0) != serves || !open {
            self.decisions.out = None;
        }
        if self.queue.bound(place) > 0 {
            if serves {
                self.call(Lane::Bound(place));
            } else if !self.seats.held.contains(&place) {
                self.seats.held.push(place);
            }
        }
    }

    /// A slot of a ready worker is free again; nothing else of it has changed.
    pub(super) fn refresh_slots(&mut self, place: u32, in_use: u32) {
        let standing = self.standing(place, in_use);
        if self.roster.at(place).is_open() {
            self.free.offer(place, &standing);
        }
        self.seats.note_free(place, self.is_free(place));
        if self.queue.bound(place) > 0 {
            self.call(Lane::Bound(place));
        }
    }

    /// How a schedule sees the worker at a place.
    pub(super) fn standing(&self, place: u32, in_use: u32) -> Standing {
        let standing = self.roster.standing(place, in_use, self.now, &self.settings);
        Standing { out: self.is_out(place) || self.kept.is_kept(place), ..standing }
    }

    /// Somebody waits in this lane: notes it if its worker has a free slot.
    pub(super) fn call(&mut self, lane: Lane) {
        if let Lane::Bound(place) = lane {
            if self.is_free(place) {
                self.seats.call(place);
            } else if self.seats.slots(place) == 0 && !self.seats.held.contains(&place) {
                self.seats.held.push(place);
            }
        }
    }

    /// Whether the worker at `place` could be given something by those that are bound to it.
    pub(super) fn is_free(&self, place: u32) -> bool {
        let slots = self.seats.slots(place);
        slots > 0
            && self.workers.at(place).in_use < slots
            && !self.is_out(place)
            && !self.kept.is_kept(place)
    }

    /// Whether the pool as a whole may have another slot in use.
    pub(super) fn may_give(&self) -> bool {
        self.settings.slots_all.is_none_or(|slots| self.workers.slots_in_use() < slots)
    }

    /// Whether somebody may be given what waits for anybody.
    pub(super) fn any_free(&self) -> bool {
        self.may_give() && self.free.any()
    }

    /// Where a request waits, if there is room for it.
    pub(super) fn lane_with_room(&mut self, asked: &Entry) -> Result<Lane, Cause> {
        if self.is_open() {
            return Err(Cause::Down);
        }
        let Entry { bytes, facts, failed, .. } = asked;
        let bytes = *bytes;
        let lane = self.lane(facts, true)?;
        let lane = self.lane_of_retry(lane, facts, failed);
        let room = match lane {
            Lane::Common if self.is_unfit() => return Err(Cause::Down),
            Lane::Again if self.has_room(bytes) => true,
            // It may not wait: whoever is free has it at once.
            Lane::Again => return self.make_room(bytes).then_some(Lane::Common).ok_or(Cause::Full),
            Lane::Common => self.kept_for(asked, lane).is_some() || self.make_room(bytes),
            Lane::Bound(place) => {
                let at_once = self.queue.bound(place) == 0 && self.is_free(place);
                self.has_room(bytes)
                    || self.kept_for(asked, lane).is_some()
                    || (at_once && self.may_give() && self.secure(place))
            }
        };
        if room { Ok(lane) } else { Err(Cause::Full) }
    }

    /// Whether a slot is free for a request in this lane, so that it need not wait, or somebody who waits
    /// already takes it.
    pub(super) fn has_free_slot_for(&mut self, lane: Lane) -> bool {
        match lane {
            Lane::Bound(place) => self.is_free(place) && self.may_give() && self.secure(place),
            Lane::Common | Lane::Again => self.secure_any(),
        }
    }

    /// Where a request waits that was given out before. A client that does not say itself to whom it
    /// is bound may have been bound by this very request, which found nobody: it goes elsewhere.
    pub(super) fn lane_of_returned(&mut self, asked: &Entry) -> Result<Lane, Cause> {
        let Entry { facts, failed, .. } = asked;
        let lane = match self.lane(facts, true) {
            Err(Cause::Gone) if facts.named.is_none() => Lane::Common,
            lane => lane?,
        };
        Ok(self.lane_of_retry(lane, facts, failed))
    }

    /// The lane of a request: that of the worker its client is bound to, or the common one.
    pub(super) fn lane(&mut self, asked: &Facts, note: bool) -> Result<Lane, Cause> {
        let Some(berth) = self.berth_of(asked) else { return Ok(Lane::Common) };
        let place = self.place_of(berth);
        if let Some(place) = place.filter(|place| self.is_worth_waiting(*place)) {
            return Ok(Lane::Bound(place));
        }
        if self.settings.sticky.is_some_and(|sticky| sticky.gone == Gone::Refuse) {
            return Err(Cause::Gone);
        }
        if note {
            self.note_rescheduled(asked, place);
        }
        Ok(Lane::Common)
    }

    pub(super) fn berth_of(&mut self, asked: &Facts) -> Option<Berth> {
        if let Some(named) = asked.named {
            return Some(Berth(named));
        }
        self.affinity.as_mut()?.find(self.now, asked.key.as_ref()?)
    }

    pub(super) fn place_of(&self, berth: Berth) -> Option<u32> {
        self.roster.place_of(berth, |worker| self.workers.find(worker).is_some())
    }

    /// Whether it serves, or may soon.
    fn is_worth_waiting(&self, place: u32) -> bool {
        self.seats.slots(place) > 0 || self.held_until(place).is_some_and(|until| until > self.now)
    }

    /// Until when those that are bound to a place wait for its worker to come back. One without a
    /// name never does.
    pub(super) fn held_until(&self, place: u32) -> Option<Instant> {
        let since = self.seats.out_since(place)?;
        let hold =
            if self.roster.is_named() { self.settings.hold } else { std::time::Duration::ZERO };
        since.checked_add(hold)
    }

    /// Those whose worker does not come back in time wait for any, or are refused.
    pub(super) fn give_up_on_workers(&mut self) {
        if self.seats.held.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.seats.held);
        held.retain(|place| {
            let waits = self.queue.bound(*place) > 0 && self.seats.slots(*place) == 0;
            if waits && !self.is_worth_waiting(*place) {
                self.give_up_on(*place);
                return false;
            }
            waits
        });
        self.seats.held = held;
    }

    /// Those who wait for the worker at this place wait for any, or are refused.
    pub(super) fn give_up_on(&mut self, place: u32) {
        match self.settings.sticky.map(|sticky| sticky.gone) {
            Some(Gone::Refuse) => {
                while let Some((payload, facts)) = self.queue.pop(Lane::Bound(place)) {
                    self.refused(payload, &facts, Cause::Gone);
                }
            }
            Some(Gone::Reschedule) | None => self.queue.unbind(place),
        }
    }

    /// Gives out what waits, as far as there are slots. Between those that are bound to somebody free
    /// and those that are not it goes by priority and by turns, so that neither starve.
    pub(super) fn dispatch(&mut self) {
        self.dispatch_again();
        while self.may_give() {
            self.dispatch_kept();
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

    /// The lane that goes next: of those whose worker has a free slot, and the common one where that
    /// may be given.
    fn next_lane(&mut self, common: bool) -> Option<Lane> {
        if self.seats.callers.is_empty() {
            return common.then_some(Lane::Common);
        }
        let mut callers = std::mem::take(&mut self.seats.callers);
        callers.retain(|&place| {
            let calls = self.queue.bound(place) > 0 && self.is_free(place);
            self.seats.seats[place as usize].calls = calls;
            calls
        });
        let bound = callers.iter().map(|&place| Lane::Bound(place));
        let next = self.queue.next_lane(common.then_some(Lane::Common).into_iter().chain(bound));
        self.seats.callers = callers;
        next
    }

    /// Gives the next of the common lane, at least one, to the worker whose turn it is; or, when
    /// the turn is with those of its own, those.
    pub(super) fn dispatch_common(&mut self) {
        let (facts, _) = self.queue.next(Lane::Common).expect("the caller has seen a request");
        // Its client may have been bound since it came, by another of its requests.
        if let Ok(Lane::Bound(place)) = self.lane(&facts, false) {
            self.queue.bind_next(place);
            self.call(Lane::Bound(place));
            return;
        }
        let failed = self.queue.next_failed(Lane::Common);
        let (place, choice) = self.next_for(&facts, &failed);
        if !self.secure(place) {
            // Other shards have it. Whoever else is free is next.
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

    /// Whose turn it is for this request. Somebody's: a slot is free.
    pub(super) fn next_for(&mut self, facts: &Facts, failed: &Failed) -> (u32, Choice) {
        if !failed.is_empty()
            && let Some(other) = self.other_for(facts, failed)
        {
            return other;
        }
        let hash = self.hash_of(facts);
        self.free.next(&mut self.random, hash).expect("the caller has seen a free slot")
    }

    /// Where a request stands on the circle of a hash.
    pub(super) fn hash_of(&self, facts: &Facts) -> Option<u64> {
        let hashes = self.settings.schedule == Schedule::Hash;
        let of_key = || facts.key.filter(|_| hashes).map(|key| key.hash());
        facts.hash.or_else(of_key)
    }

    /// Whether a request of so many bytes, for which there is room in the common lane, need not
    /// wait once a slot is free: nobody else does, and its batch is not to grow.
    pub(super) fn goes_at_once(&self, bytes: usize) -> bool {
        let (batch, limits) = (&self.settings.batch, &self.settings.queue);
        let is_due = batch.wait.is_zero()
            || batch.rows.min(limits.length) <= 1
            || bytes >= batch.bytes.min(limits.bytes);
        is_due && self.queue.is_empty()
    }

    /// The worker at this place for a client that is bound to it, with a token in hand; none when it is
    /// to wait behind others. Its batch never waits for more.
    pub(super) fn secure_own(&mut self, place: u32) -> Option<(u32, Choice)> {
        let may = self.queue.is_empty() && self.is_free(place) && self.may_give();
        (may && self.secure(place)).then_some((place, Choice::Bound))
    }

    /// Gives a request that need not wait to the worker whose turn it is.
    pub(super) fn give_at_once(
        &mut self,
        (place, choice): (u32, Choice),
        payload: P,
        facts: &Facts,
    ) {
        let gift = self.begin_batch(place, choice);
        self.hand_over(&gift, payload, facts, true);
        self.recycle.handle_dispatched(place, 1);
    }

    /// Takes a free slot of a worker for a batch, with its token in hand.
    fn begin_batch(&mut self, place: u32, choice: Choice) -> Gift {
        let in_use = self.workers.occupy(place);
        self.spend(place);
        let standing = self.standing(place, in_use);
        self.free.given(place, &standing);
        let worker = self.workers.id(place);
        let was_free = self.seats.free;
        self.seats.note_free(place, standing.is_free());
        self.counts.batches += 1;
        Gift { place, worker, choice, was_free }
    }

    /// Gives the next of a lane to a worker that has a free slot.
    pub(super) fn give(&mut self, place: u32, lane: Lane, choice: Choice) {
        let gift = self.begin_batch(place, choice);
        let batch = self.settings.batch;
        let (mut rows, mut bytes) = (0, 0_usize);
        let mut next = self.queue.head(lane);
        while let Some((waiting, more)) = next {
            let (payload, facts) = self.queue.take(waiting);
            rows += 1;
            bytes = bytes.saturating_add(more);
            let fits = |next: &(u32, usize)| bytes.saturating_add(next.1) <= batch.bytes;
            next = None;
            if rows < batch.rows {
                next = self.queue.head_that_joins(lane).filter(fits);
            }
            self.hand_over(&gift, payload, &facts, next.is_none());
        }
        self.recycle.handle_dispatched(place, u64::from(rows));
    }

    /// A request goes to its worker.
    #[inline]
    fn hand_over(&mut self, gift: &Gift, payload: P, facts: &Facts, last: bool) {
        let Gift { place, worker, choice, was_free } = *gift;
        self.bind(facts, place, worker);
        self.note_given(facts, worker, choice, was_free);
        self.counts.dispatched += 1;
        self.counts.bound += u64::from(choice == Choice::Bound);
        self.effects.push_back(Effect::Dispatch { worker, payload, last });
    }

    /// Its client is bound to this worker from now on.
    fn bind(&mut self, facts: &Facts, place: u32, worker: WorkerId) {
        if let (Some(key), Some(affinity)) = (&facts.key, &mut self.affinity) {
            affinity.bind(self.now, key, self.roster.berth(place, worker));
        }
    }

    /// Sweeps what this file keeps.
    pub(super) fn check_seats(&self) {
        let (mut slots, mut serving, mut free) = (0, 0, 0);
        for (place, worker) in self.workers.all() {
            let serves = worker.state == State::Ready && self.roster.at(place).serves();
            let standing = self.roster.standing(place, worker.in_use, self.now, &self.settings);
            assert_eq!(self.seats.slots(place), if serves { standing.slots } else { 0 });
            slots += u64::from(self.seats.slots(place));
            serving += u32::from(serves);
            if place < PLACES_SEEN && self.is_free(place) {
                free |= 1 << place;
            }
            let waits = self.queue.bound(place) > 0;
            let served = !waits || !self.is_free(place) || !self.may_give();
            assert!(served, "a slot is free for somebody who is bound to it");
            assert!(!waits || serves || self.seats.held.contains(&place), "a worker is waited for");
        }
        assert_eq!((slots, serving, free), (self.seats.slots, self.seats.serving, self.seats.free));
        if let Some(all) = self.settings.slots_all {
            let given = self.effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. }));
            assert!(!given || self.workers.slots_in_use() <= all, "never over the pool's limit");
        }
    }
}
