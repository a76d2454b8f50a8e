//! Changes that the server delivers.

use exchange::mutant::{Mutant, active};

use super::{Replica, Update};
use crate::key::Key;
use crate::message::{Change, ChangeKind, OperationId, Origin, Subject, Target, Value};
use crate::read::Read;
use crate::table::{Entry, Flag};

impl Replica {
    pub(super) fn changed(&mut self, now_ms: u64, operation: OperationId, change: Change) {
        let is_watch = self.stream.watch == Some(operation);
        let read = match is_watch {
            true if self.stream.is_caught_up => Read::Live,
            true => Read::CatchUp,
            false if self.repairs.is_fetch(operation) => Read::Fetch,
            false => return self.counters.stale += 1,
        };
        if is_watch {
            // The watch delivers in order, so this change was delivered before.
            if is_old(change.revision, self.stream.position) {
                self.counters.stale += 1;
                return;
            }
            self.stream.position = self.stream.position.max(change.revision);
        }
        match change.subject {
            Subject::Client(key) => self.apply(now_ms, key, change, read),
            Subject::Epoch if is_watch => self.mark_seen(now_ms, change),
            Subject::Epoch => {}
        }
        if is_watch {
            self.release_seen(now_ms);
        }
    }

    /// Applies a change of a client's entry, unless a newer one is known.
    pub(super) fn apply(&mut self, now_ms: u64, key: Key, change: Change, read: Read) {
        if matches!(read, Read::Fetch | Read::Get) {
            self.shards.note_ahead(key.shard(), change.revision);
        }
        let place = self.table.place(&key);
        let held = match place {
            Some(place) if self.shards.is_seen(self.table.at(place)) => {
                self.table.at(place).revision
            }
            // Everything up to the position was delivered: the entry has ended since.
            None if read == Read::Get => self.stream.position,
            _ => 0,
        };
        if is_old(change.revision, held) {
            self.counters.stale += 1;
            return;
        }
        match (change.kind, place) {
            (ChangeKind::Put(Value::Binding { target, origin }), Some(place)) => {
                self.put(now_ms, place, target, origin, change.revision, read);
            }
            (ChangeKind::Put(Value::Binding { target, .. }), None) => {
                self.put_new(now_ms, key, target, change.revision, read);
            }
            (ChangeKind::Put(Value::Epoch(_)) | ChangeKind::Unreadable, _) => {
                self.counters.unreadable += 1;
            }
            (ChangeKind::Expired, Some(place)) => {
                self.server_expired(now_ms, place, change.revision);
            }
            (ChangeKind::Deleted, Some(place)) => self.deleted(place, change.revision),
            (ChangeKind::Deleted | ChangeKind::Expired, None) => {
                self.remember_deleted(now_ms, key, change.revision);
            }
        }
    }

    fn put_new(&mut self, now_ms: u64, key: Key, target: Target, revision: u64, read: Read) {
        let mut entry = Entry::new(key, target, now_ms, self.shards.pass(&key));
        entry.revision = revision;
        entry.published_ms = self.published_ms(now_ms, read);
        let place = self.insert(now_ms, entry);
        self.shards.list(self.table.at_mut(place));
        self.updates.push_back(Update { key, target: Some(target) });
    }

    /// When a value was written, at the latest. If its age is unknown, the first use writes it again.
    fn published_ms(&self, now_ms: u64, read: Read) -> u64 {
        let age = if read == Read::Live { 0 } else { self.settings.touch_after_ms() };
        now_ms.saturating_sub(age)
    }

    fn put(
        &mut self,
        now_ms: u64,
        place: u32,
        target: Target,
        origin: Origin,
        revision: u64,
        read: Read,
    ) {
        let is_bound = self.is_bound(now_ms, self.table.at(place));
        let published_ms = self.published_ms(now_ms, read);
        let entry = self.table.at_mut(place);
        // The same write may be delivered by several reads.
        let is_new = (entry.revision, entry.shared) != (revision, target);
        self.shards.unlist(entry);
        (entry.shared, entry.revision) = (target, revision);
        self.shards.list(entry);
        if origin == self.origin {
            self.own_put(place);
            return;
        }
        let entry = self.table.at_mut(place);
        let is_dirty = entry.is(Flag::Dirty);
        if is_bound && entry.target != target {
            if self.down.contains(&target) && !self.down.contains(&entry.target) {
                entry.set(Flag::Refused, true);
                entry.set(Flag::Dirty, true);
                self.counters.refused += 1;
                return;
            }
            self.counters.conflicts += u64::from(is_dirty);
        }
        if !(is_dirty && is_bound && active(Mutant::LoserKeeps)) {
            entry.target = target;
        }
        entry.set(Flag::Dirty, false);
        entry.set(Flag::Refused, false);
        entry.set(Flag::Removed, false);
        if is_new {
            entry.is_mine = false;
            entry.published_ms = published_ms;
            let key = entry.key;
            self.table.touch(place, now_ms);
            self.updates.push_back(Update { key, target: Some(target) });
        }
    }

    /// A write of this daemon was delivered. A later local change stays to be written.
    fn own_put(&mut self, place: u32) {
        let entry = self.table.at_mut(place);
        let is_written = entry.target == entry.shared && !entry.is(Flag::Removed);
        if is_written || !entry.is(Flag::Dirty) {
            // An older history of the bucket, for example, has replaced the binding of another daemon.
            if !is_written {
                self.updates.push_back(Update { key: entry.key, target: Some(entry.shared) });
            }
            entry.target = entry.shared;
            entry.set(Flag::Dirty, false);
            entry.set(Flag::Refused, false);
            entry.set(Flag::Removed, false);
        }
    }

    fn deleted(&mut self, place: u32, revision: u64) {
        let entry = self.table.at_mut(place);
        self.shards.unlist(entry);
        entry.revision = revision;
        entry.set(Flag::Dirty, false);
        entry.set(Flag::Refused, false);
        entry.set(Flag::Removed, true);
        self.updates.push_back(Update { key: entry.key, target: None });
        // While the shard is fetched, an older value may still arrive.
        if !self.shards.is_reading(entry.key.shard()) {
            self.remove(place);
        }
    }

    fn server_expired(&mut self, now_ms: u64, place: u32, revision: u64) {
        if !self.is_bound(now_ms, self.table.at(place)) || active(Mutant::MarkerDeletes) {
            self.deleted(place, revision);
            return;
        }
        self.counters.kept += 1;
        let entry = self.table.at_mut(place);
        self.shards.unlist(entry);
        entry.revision = revision;
        if entry.is_mine {
            entry.set(Flag::Dirty, true);
            self.queue_first(now_ms, place);
        }
    }

    /// Remembers a deletion while a fetch could deliver an older value.
    fn remember_deleted(&mut self, now_ms: u64, key: Key, revision: u64) {
        if !self.repairs.is_fetching(key.shard()) {
            return;
        }
        let mut entry = Entry::new(key, Target(0), now_ms, self.shards.pass(&key));
        entry.revision = revision;
        entry.set(Flag::Removed, true);
        self.insert(now_ms, entry);
    }
}

/// Whether a change at `revision` is not newer than the one that is held. Versions decide, never the order of arrival.
fn is_old(revision: u64, held: u64) -> bool {
    revision <= held && !active(Mutant::ArrivalOrder)
}
