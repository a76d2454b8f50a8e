//! Repairs: fetches of shards, and the walk over the table that decides on entries which the server does not have.

use exchange::mutant::{Mutant, active};

use super::{Replica, Update};
use crate::message::{Command, OperationId};
use crate::repairs::Fetch;
use crate::state::State;
use crate::table::Flag;

/// The number of places that one step of a walk examines.
const STEP: u32 = 1024;

impl Replica {
    /// Does the next step of the walk, and starts the next fetch.
    pub(super) fn repair(&mut self, now_ms: u64) {
        if !self.stream.is_caught_up {
            return;
        }
        if self.repairs.walk.is_none() && self.is_overflow_due() {
            self.writer.is_overflowed = false;
            self.repairs.start_walk();
        }
        if let Some(from) = self.repairs.walk {
            self.walk(now_ms, from);
        } else if let (None, Some(shard)) = (self.repairs.fetch, self.repairs.wanted.first()) {
            self.fetch(now_ms, shard);
        }
    }

    pub(super) fn has_repairs(&self) -> bool {
        let is_walking = self.repairs.walk.is_some() && !self.is_full();
        let is_waiting = self.repairs.fetch.is_none() && !self.repairs.wanted.is_empty();
        let is_due = is_walking || is_waiting && self.repairs.walk.is_none();
        self.stream.is_caught_up && (is_due || self.is_overflow_due())
    }

    fn is_full(&self) -> bool {
        self.writer.pending.length() >= self.settings.pending_max
    }

    fn is_overflow_due(&self) -> bool {
        let has_room = self.writer.pending.length() <= self.settings.pending_max / 2;
        self.writer.is_overflowed && has_room && self.repairs.walk.is_none()
    }

    fn fetch(&mut self, now_ms: u64, shard: u8) {
        let operation = self.source.operation();
        self.counters.fetches += 1;
        self.repairs.wanted.remove(shard);
        self.repairs.fetch = Some(Fetch { operation, shard, sent_ms: now_ms });
        self.shards.restart(shard);
        self.outbox.push_back(Command::Fetch { operation, shard });
    }

    pub(super) fn fetched(&mut self, operation: OperationId, revision: u64) {
        if let Some(fetch) = self.repairs.fetch.take_if(|fetch| fetch.operation == operation) {
            self.shards.complete(fetch.shard, revision);
            self.repairs.start_walk();
        }
    }

    fn walk(&mut self, now_ms: u64, from: u32) {
        let places = self.table.places();
        let end = places.min(from.saturating_add(STEP));
        for place in from..end {
            if self.is_full() {
                self.repairs.walk = Some(place);
                return;
            }
            if self.table.is_taken(place) {
                self.decide(now_ms, place);
            }
        }
        if end < places {
            self.repairs.walk = Some(end);
            return;
        }
        self.repairs.walk = None;
        self.shards.decided();
        self.stream.is_new_history = false;
        self.stream.state = State::InSync;
    }

    /// Decides on an entry that was not seen in the last pass over its shard.
    fn decide(&mut self, now_ms: u64, place: u32) {
        let entry = *self.table.at(place);
        let is_undecided = self.shards.undecided().contains(entry.key.shard());
        if is_undecided && !self.shards.is_seen(&entry) {
            let is_bound = self.is_bound(now_ms, &entry);
            let is_ours = entry.is_mine || entry.is(Flag::Dirty);
            let is_lost = self.stream.is_new_history || !entry.is(Flag::Listed);
            let is_kept = is_ours || is_lost || active(Mutant::NoSweep);
            let entry = self.table.at_mut(place);
            self.shards.unlist(entry);
            entry.revision = 0;
            if !is_bound || !is_kept {
                self.counters.swept += u64::from(is_bound);
                self.updates.push_back(Update { key: entry.key, target: None });
                self.remove(place);
                return;
            }
            entry.set(Flag::Dirty, is_ours);
            entry.set(Flag::Refused, false);
        }
        let entry = self.table.at(place);
        if entry.is(Flag::Dirty) && !entry.is(Flag::Refused) {
            self.queue_first(now_ms, place);
        }
    }
}
