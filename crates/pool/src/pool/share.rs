//! How a pool shares its workers with the same pool on other shards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId, WorkerIndex};

use super::shared::{Shared, TokenCache};
use super::{Phase, Pool};
use crate::Queueable;
use crate::affinity::AffinityTarget;
use crate::effect::{Effect, Refused};
use crate::queue::{QueueEntry, Ticket};
use crate::schedule::Choice;
use crate::tokens::Tokens;
use crate::update::{PoolUpdate, WorkerUpdate};
use crate::workers::State;

/// How often the slots in use on other shards are examined while the fallback is on.
const LOOK: Duration = Duration::from_millis(100);

impl<P: Queueable> Pool<P> {
    /// Shares the workers with other shards from now on. `words` has the tokens of each worker, by place: one token per
    /// slot. It must be called before any worker has started.
    pub fn share(&mut self, words: Vec<Arc<Tokens>>, is_owner: bool) {
        let allotted: Vec<u32> = words.iter().map(|word| word.look().1).collect();
        let slots = allotted.iter().map(|&slots| u64::from(slots)).sum();
        let caches = vec![TokenCache::default(); words.len()];
        let update = PoolUpdate { dispatches: false, places: Vec::new() };
        self.shared = Some(Box::new(Shared {
            words,
            allotted,
            slots,
            is_owner,
            caches,
            touched: Vec::new(),
            update,
            changed: is_owner,
        }));
    }

    /// Whether this is the pool of a member shard, so that another shard owns it.
    #[must_use]
    pub fn is_member_shard(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.is_owner)
    }

    /// A request arrives at a member shard. It is dispatched immediately.
    ///
    /// # Errors
    /// Returns the payload if a member shard must not decide about it, or if no token is available. Then the owner
    /// shard must be asked. The cause is [`Cause::Full`].
    pub fn handle_entry_on_member(
        &mut self,
        now: Instant,
        payload: P,
        mut entry: QueueEntry,
    ) -> Result<Ticket, Refused<P>> {
        self.begin(now);
        entry.info.since = self.now;
        self.look_again();
        let Some(next) = self.next_on_member(&entry) else {
            self.release_unused_tokens();
            return Err(Refused { payload, cause: Cause::Full });
        };
        self.counts.admitted += 1;
        self.give_at_once(next, payload, &entry.info);
        self.turn();
        Ok(Ticket::SPENT)
    }

    /// Returns the worker that a member shard can give a request to, with a token in the cache.
    fn next_on_member(&mut self, request: &QueueEntry) -> Option<(u32, Choice)> {
        let shared = self.shared.as_ref()?;
        if !shared.update.dispatches || self.phase > Phase::Serving {
            return None;
        }
        let Some(named) = request.info.named else { return self.secure_next(request) };
        // If the worker is missing or does not serve, only the owner shard may give up on it.
        let place = self.place_of(AffinityTarget(named))?;
        let there = self.is_free(place) && self.secure(place);
        there.then_some((place, Choice::Bound))
    }

    /// Returns the worker whose turn it is for this request, with a token in the cache. `None` if no worker has a free
    /// slot.
    pub(super) fn secure_next(&mut self, request: &QueueEntry) -> Option<(u32, Choice)> {
        while self.any_free() {
            let next = self.next_for(&request.info, &request.failed);
            if self.secure(next.0) {
                return Some(next);
            }
        }
        None
    }

    /// Ensures that a token of this worker is in the cache. Returns `false` if none is available; then the worker has
    /// no free slot.
    pub(super) fn secure(&mut self, place: u32) -> bool {
        let Some(shared) = &mut self.shared else { return true };
        let secured = shared.secure(place);
        if !secured {
            self.refresh(place);
        }
        secured
    }

    /// Whether a worker certainly has a free slot, with its token in the cache.
    pub(super) fn secure_any(&mut self) -> bool {
        while self.any_free() {
            if self.shared.is_none() {
                return true;
            }
            let Some((place, _)) = self.free.next(&mut self.random, None) else { return false };
            if self.secure(place) {
                return true;
            }
        }
        false
    }

    /// Whether no token of this worker is available at the moment.
    pub(super) fn is_out(&self, place: u32) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_out(place))
    }

    /// A request takes the token from the cache.
    pub(super) fn spend(&mut self, place: u32) {
        if let Some(shared) = &mut self.shared {
            shared.spend(place);
        }
    }

    /// Slots of a worker are no longer in use.
    pub(super) fn give_back(&mut self, place: u32, slots: u32) {
        let Some(shared) = &mut self.shared else { return };
        let mailed = (0..slots).map(|_| u32::from(shared.give_back(place))).sum();
        self.send_to_owner(place, mailed);
    }

    /// The owner shard receives a token that a member shard could not return to a closed word ([`Effect::ToOwner`]).
    pub fn handle_token(&mut self, now: Instant, worker: WorkerIndex) {
        let place = worker.get();
        self.begin(now);
        if self.shared.as_ref().is_some_and(|shared| shared.is_owner) {
            self.give_back(place, 1);
            if !self.workers.is_vacant(place) {
                self.refresh(place);
            }
        }
        self.turn();
    }

    /// Places where a member shard found no token are examined again: one may be free now.
    fn look_again(&mut self) {
        let Some(shared) = &self.shared else { return };
        let may = |place: &u32| {
            let (closed, free) = shared.words[*place as usize].look();
            shared.is_out(*place) && !closed && free > 0
        };
        let places: Vec<u32> = shared.touched.iter().copied().filter(may).collect();
        for place in places {
            if let Some((cache, _)) = self.shared.as_mut().and_then(|shared| shared.cache(place)) {
                cache.out = false;
            }
            self.refresh(place);
        }
    }

    /// Empties the caches and opens the closed words of places that no request waits for.
    pub(super) fn release_unused_tokens(&mut self) {
        let Some(shared) = self.shared.as_mut().filter(|shared| !shared.touched.is_empty()) else {
            return;
        };
        let mut touched = std::mem::take(&mut shared.touched);
        touched.retain(|place| self.release_unused_at(*place));
        if let Some(shared) = &mut self.shared {
            shared.touched = touched;
        }
    }

    /// Whether a request waits that may be given to this worker.
    fn is_waited_for(&self, place: u32) -> bool {
        self.queue.common().0 > 0 || self.queue.bound(place) > 0 || self.is_wanted_for_retry(place)
    }

    /// Empties the cache and opens the word of one place. Returns `true` if the place must be examined again.
    fn release_unused_at(&mut self, place: u32) -> bool {
        let waited_for = self.is_waited_for(place);
        let Some(shared) = &mut self.shared else { return false };
        let was_out = shared.is_out(place);
        let mailed = if waited_for { 0 } else { shared.release_cached(place) };
        let Some((cache, _)) = shared.cache(place) else { return false };
        cache.touched = cache.out || cache.tokens > 0;
        let (left, is_out) = (cache.touched, cache.out && cache.tokens == 0);
        self.send_to_owner(place, mailed);
        if was_out != is_out && !self.workers.is_vacant(place) {
            self.refresh(place);
        }
        left
    }

    fn send_to_owner(&mut self, place: u32, tokens: u32) {
        let index = WorkerIndex::new(place);
        self.effects.extend((0..tokens).map(|_| Effect::ToOwner { index }));
    }

    /// The number of slots in use. On the owner shard, this includes all shards.
    pub(super) fn taken(&self) -> u64 {
        let elsewhere = self.shared.as_ref().filter(|shared| shared.is_owner);
        let here = || u64::from(self.workers.slots_in_use());
        elsewhere.map_or_else(here, |shared| shared.taken())
    }

    /// When to examine the slots in use on other shards. Other shards do not report them.
    pub(super) fn looks_at(&self) -> Option<Instant> {
        let looks = self.fallback.is_on() && self.shared.as_ref().is_some_and(|it| it.is_owner);
        looks.then(|| self.now + LOOK)
    }

    /// The worker at a place has changed. The member shards may need an update.
    pub(super) fn note_update(&mut self, place: u32) {
        let Some(shared) = self.shared.as_ref().filter(|shared| shared.is_owner) else { return };
        if shared.changed
            || shared.update.places.get(place as usize) == Some(&self.update_of(place))
        {
            return;
        }
        if let Some(shared) = &mut self.shared {
            shared.changed = true;
        }
    }

    fn update_of(&self, place: u32) -> WorkerUpdate {
        let record = self.worker_table.at(place);
        let runs = !self.workers.is_vacant(place);
        let ready = runs && self.workers.at(place).state == State::Ready;
        let (serves, open) = (ready && record.serves(), ready && record.is_open());
        WorkerUpdate {
            worker: runs.then(|| self.workers.id(place)),
            serves,
            open,
            weight: record.weight(),
            out: if open { None } else { self.out_reason(place) },
        }
    }

    /// Returns an update for the member shards, if something has changed.
    pub fn poll_update(&mut self) -> Option<PoolUpdate> {
        let dispatches = !self.fallback.is_by_operator();
        let shared = self.shared.as_ref().filter(|shared| shared.is_owner)?;
        if !shared.changed && shared.update.dispatches == dispatches {
            return None;
        }
        let places = self.worker_table.places().map(|place| self.update_of(place)).collect();
        let update = PoolUpdate { dispatches, places };
        if let Some(shared) = &mut self.shared {
            shared.changed = false;
            shared.update.clone_from(&update);
        }
        Some(update)
    }

    /// A member shard receives an update from the owner shard. Returns the workers whose server was restarted since the
    /// last update: idle connections to it may be dead.
    pub fn handle_update(&mut self, now: Instant, update: &PoolUpdate) -> Vec<WorkerId> {
        self.begin(now);
        let mut restarted = Vec::new();
        if self.is_member_shard() {
            for (place, owner_update) in (0..).zip(&update.places) {
                restarted.extend(self.handle_worker_update(place, *owner_update));
            }
            self.follow_weights();
            if let Some(shared) = &mut self.shared {
                shared.update.clone_from(update);
            }
        }
        self.turn();
        restarted
    }

    fn handle_worker_update(&mut self, place: u32, owner_update: WorkerUpdate) -> Option<WorkerId> {
        let before = self.owner_update(place).and_then(|before| before.worker);
        // The owner shard may already have newer settings than this shard.
        if !self.worker_table.places().any(|there| there == place) {
            return None;
        }
        let did_serve = self.worker_table.at(place).serves();
        let record = self.worker_table.at_mut(place);
        record.owner_update = Some(owner_update);
        record.set_weight(Some(owner_update.weight));
        if owner_update.serves && !did_serve {
            self.worker_table.warm_up(place, self.now, self.settings.slow_start);
        }
        self.decisions.out = None;
        if self.workers.is_vacant(place) {
            return None;
        }
        self.refresh(place);
        (before.is_some() && before != owner_update.worker).then(|| self.workers.id(place))
    }

    fn owner_update(&self, place: u32) -> Option<&WorkerUpdate> {
        self.shared.as_ref()?.update.places.get(place as usize)
    }

    /// Returns the id that the owner shard uses for a worker of this member shard.
    #[must_use]
    pub fn worker_on_owner(&self, worker: WorkerId) -> Option<WorkerId> {
        self.owner_update(self.workers.find(worker)?)?.worker
    }

    /// Checks the invariants of this file.
    pub(super) fn check_shared(&self) {
        let Some(shared) = &self.shared else { return };
        for (place, cache) in (0..).zip(&shared.caches) {
            let waited_for = self.is_waited_for(place);
            assert!(waited_for || cache.tokens == 0, "a token in hand is for somebody who waits");
            let touched = shared.touched.contains(&place);
            assert!(touched || (cache.tokens == 0 && !cache.out), "what is in hand is remembered");
            if shared.is_owner {
                let (closed, _) = shared.words[place as usize].look();
                assert_eq!(closed, cache.out, "home knows what it has closed");
                assert!(waited_for || cache.owed > 0 || !cache.out, "a closed word is waited for");
                assert!(
                    cache.owed == 0 || cache.out && cache.tokens == 0,
                    "what is owed is to come"
                );
            }
        }
        assert!(shared.is_owner || self.queue.is_empty(), "nobody waits at a branch");
    }
}
