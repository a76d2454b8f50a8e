//! Requests: lookups, bindings and the expiry of entries.

use super::{Replica, Update};
use crate::key::Key;
use crate::message::Target;
use crate::table::{Entry, Flag};

/// The maximum number of entries that one operation removes because they expired.
const EXPIRED_AT_ONCE: usize = 4;

impl Replica {
    /// Returns the target of this client. The lookup counts as use.
    pub fn find(&mut self, now_ms: u64, key: &Key) -> Option<Target> {
        self.expire(now_ms);
        let place = self.table.place(key)?;
        if !self.is_bound(now_ms, self.table.at(place)) {
            return None;
        }
        self.table.touch(place, now_ms);
        let entry = self.table.at_mut(place);
        if entry.is(Flag::Refused) && !self.down.contains(&entry.shared) {
            entry.target = entry.shared;
            entry.set(Flag::Refused, false);
            entry.set(Flag::Dirty, false);
        }
        let target = entry.target;
        self.used(now_ms, place);
        Some(target)
    }

    /// Returns the target of this client. The lookup does not count as use.
    #[must_use]
    pub fn peek(&self, now_ms: u64, key: &Key) -> Option<Target> {
        let entry = self.table.at(self.table.place(key)?);
        // A target that was refused is adopted at the next use, unless it is still down.
        let is_adopted = entry.is(Flag::Refused) && !self.down.contains(&entry.shared);
        let target = if is_adopted { entry.shared } else { entry.target };
        self.is_bound(now_ms, entry).then_some(target)
    }

    /// Binds this client. An earlier binding is replaced.
    pub fn bind(&mut self, now_ms: u64, key: &Key, target: Target) {
        self.expire(now_ms);
        let place = match self.table.place(key) {
            Some(place) => {
                let is_same = self.table.at(place).target == target;
                let is_bound = self.is_bound(now_ms, self.table.at(place));
                self.table.touch(place, now_ms);
                if is_same && is_bound && !self.table.at(place).is(Flag::Refused) {
                    self.used(now_ms, place);
                    return;
                }
                place
            }
            None => self.insert(now_ms, Entry::new(*key, target, now_ms, self.shards.pass(key))),
        };
        let entry = self.table.at_mut(place);
        entry.target = target;
        entry.is_mine = true;
        entry.set(Flag::Removed, false);
        entry.set(Flag::Refused, false);
        entry.set(Flag::Dirty, true);
        self.queue_first(now_ms, place);
    }

    /// Takes a report of a reader that has a table of its own: it sent a request of this client to `target`, and its
    /// table had `before`. A decision that did not know the binding of another daemon loses: the reader gets that
    /// binding from [`Replica::poll_update`].
    pub fn report(&mut self, now_ms: u64, key: &Key, before: Option<Target>, target: Target) {
        let found = self.find(now_ms, key);
        if found == Some(target) {
            let place = self.table.place(key).expect("it was found");
            let entry = self.table.at(place);
            let idle = now_ms.saturating_sub(entry.published_ms);
            if !entry.is(Flag::Dirty) && idle >= self.settings.touch_reported_after_ms() {
                self.queue_touch(now_ms, place);
            }
            return;
        }
        if found.is_some() && found != before {
            self.counters.conflicts += u64::from(before != Some(target));
            self.updates.push_back(Update { key: *key, target: found });
            return;
        }
        self.bind(now_ms, key, target);
    }

    /// Ends the binding of this client at all daemons. Like a binding, it loses against a concurrent write.
    pub fn unbind(&mut self, now_ms: u64, key: &Key) {
        let Some(place) = self.table.place(key) else { return };
        let entry = self.table.at_mut(place);
        if !entry.is(Flag::Listed) && !entry.is(Flag::Awaiting) {
            self.remove(place);
            return;
        }
        entry.set(Flag::Removed, true);
        entry.set(Flag::Refused, false);
        entry.set(Flag::Dirty, true);
        self.queue_first(now_ms, place);
    }

    /// Notes whether a target is down. Bindings to it are not adopted from other daemons while it is.
    pub fn set_down(&mut self, target: Target, is_down: bool) {
        if is_down {
            self.down.insert(target);
        } else {
            self.down.remove(&target);
        }
    }

    /// The entry was used by a request.
    fn used(&mut self, now_ms: u64, place: u32) {
        let entry = self.table.at_mut(place);
        entry.is_mine = true;
        if entry.is(Flag::Dirty) || !entry.is(Flag::Listed) {
            entry.set(Flag::Dirty, true);
            self.queue_first(now_ms, place);
        } else if now_ms.saturating_sub(entry.published_ms) >= self.settings.touch_after_ms() {
            self.queue_touch(now_ms, place);
        }
    }

    /// Whether requests of this client go to the entry's target. Other daemons write a use up to a quarter of the
    /// lifetime late.
    pub(super) fn is_bound(&self, now_ms: u64, entry: &Entry) -> bool {
        let late = if entry.is_mine { 0 } else { self.settings.touch_after_ms() };
        let idle = now_ms.saturating_sub(entry.used_ms);
        !entry.is(Flag::Removed) && idle < self.settings.lifetime_ms + late
    }

    /// Adds an entry. If the table is full, the entry that was idle longest is evicted.
    pub(super) fn insert(&mut self, now_ms: u64, entry: Entry) -> u32 {
        if self.table.length() >= self.settings.entries_max.max(1) as usize {
            let oldest = self.table.idle_longest().expect("a full table has an oldest entry");
            let is_bound = self.is_bound(now_ms, self.table.at(oldest));
            self.counters.evicted += u64::from(is_bound);
            self.remove(oldest);
        }
        self.table.insert(entry)
    }

    pub(super) fn remove(&mut self, place: u32) {
        let mut entry = self.table.remove(place);
        self.shards.forget(&mut entry);
    }

    /// Removes some expired entries: more than are added, so that none stays forever. An entry that the server still
    /// has is needed for the digest; the server's expiry arrives at most 1.25 lifetimes after the last use.
    fn expire(&mut self, now_ms: u64) {
        for _ in 0..EXPIRED_AT_ONCE {
            let Some(oldest) = self.table.idle_longest() else { return };
            let entry = self.table.at(oldest);
            let idle = now_ms.saturating_sub(entry.used_ms);
            let lifetime = self.settings.lifetime_ms;
            let is_late = idle >= lifetime + lifetime / 2;
            let is_kept = entry.is(Flag::Listed) || entry.is(Flag::Removed) && idle < lifetime;
            if !is_late && (is_kept || self.is_bound(now_ms, entry)) {
                return;
            }
            self.remove(oldest);
        }
    }

    /// The entry waits to be written, before touches. If there is no room, the flag `Dirty` stays, and a walk over the
    /// table finds it.
    pub(super) fn queue_first(&mut self, now_ms: u64, place: u32) {
        let entry = self.table.at(place);
        if entry.is(Flag::Awaiting) || entry.is(Flag::QueuedFirst) {
            return;
        }
        if !self.has_room() {
            self.writer.is_overflowed = true;
            self.counters.overflows += 1;
            return;
        }
        let entry = self.table.at_mut(place);
        entry.set(Flag::QueuedFirst, true);
        entry.set(Flag::QueuedTouch, false);
        let key = entry.key;
        self.writer.pending.push_first(now_ms, key);
    }

    fn queue_touch(&mut self, now_ms: u64, place: u32) {
        let entry = self.table.at(place);
        if entry.is(Flag::Awaiting) || entry.is_queued() {
            return;
        }
        if !self.has_room() {
            self.counters.touches_dropped += 1;
            return;
        }
        let entry = self.table.at_mut(place);
        entry.set(Flag::QueuedTouch, true);
        let key = entry.key;
        self.writer.pending.push_touch(now_ms, key);
    }

    /// Whether another key can wait. The oldest touch makes room.
    fn has_room(&mut self) -> bool {
        if self.writer.pending.length() < self.settings.pending_max {
            return true;
        }
        let Some(key) = self.writer.pending.drop_touch() else { return false };
        if let Some(entry) = self.table.find_mut(&key) {
            self.counters.touches_dropped += u64::from(entry.is(Flag::QueuedTouch));
            entry.set(Flag::QueuedTouch, false);
        }
        true
    }
}
