//! The entries of a replica: an index by key, and the order of their last use.
//!
//! Places are stable: a walk over the table can stop and continue. An insertion never moves other entries in memory,
//! except when the vectors grow to their final size.

use hashbrown::HashTable;

use crate::key::Key;
use crate::message::Target;

/// Marks the end of the order.
const NONE: u32 = u32::MAX;

/// A property of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flag {
    /// The local target must be written.
    Dirty = 2,
    /// A write is in flight.
    Awaiting = 4,
    /// The server's target was not adopted because it is down.
    Refused = 8,
    /// The client is not bound: the entry only remembers a deletion.
    Removed = 16,
    /// The server has `shared` at `revision`.
    Listed = 32,
    /// It waits to be written, before touches.
    QueuedFirst = 64,
    /// It waits to be written, as a touch.
    QueuedTouch = 128,
}

/// One client. The local part and the server's part are separate: `target` answers requests, `shared` is what the
/// server has and what digests contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The target in force at this daemon.
    pub(crate) target: Target,
    /// The target that the server has at `revision`.
    pub(crate) shared: Target,
    /// The revision of the last change that was seen.
    pub(crate) revision: u64,
    /// The last use: a request here, or the arrival of another daemon's write.
    pub(crate) used_ms: u64,
    /// The last write by any daemon, as far as it is known here.
    pub(crate) published_ms: u64,
    before: u32,
    after: u32,
    /// The pass over the shard in which the server's part was seen. In another pass, it is not known any more.
    pub(crate) pass: u32,
    flags: u8,
    /// The last use that is known was a request at this daemon. (As a `bool`, it makes room for the `None` of a vacant
    /// place.)
    pub(crate) is_mine: bool,
}

impl Entry {
    pub(crate) const fn new(key: Key, target: Target, now_ms: u64, pass: u32) -> Self {
        Self {
            key,
            target,
            shared: target,
            revision: 0,
            used_ms: now_ms,
            published_ms: now_ms,
            before: NONE,
            after: NONE,
            pass,
            flags: 0,
            is_mine: false,
        }
    }

    pub(crate) const fn is(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    pub(crate) const fn set(&mut self, flag: Flag, value: bool) {
        if value {
            self.flags |= flag as u8;
        } else {
            self.flags &= !(flag as u8);
        }
    }

    pub(crate) const fn is_queued(&self) -> bool {
        self.is(Flag::QueuedFirst) || self.is(Flag::QueuedTouch)
    }

    /// The revision that a write must name: 0 if the server has no value.
    pub(crate) const fn expected(&self) -> u64 {
        if self.is(Flag::Listed) { self.revision } else { 0 }
    }
}

/// All entries.
#[derive(Debug)]
pub(crate) struct Table {
    index: HashTable<u32>,
    entries: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    /// The entry that was idle longest.
    first: u32,
    last: u32,
}

impl Table {
    /// Reserves memory for this number of entries. It is not touched before it is used.
    pub(crate) fn with_capacity(entries: u32) -> Self {
        Self {
            index: HashTable::with_capacity(entries as usize),
            entries: Vec::with_capacity(entries as usize),
            vacant: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.index.len()
    }

    /// The number of places. Every entry has a place below it.
    pub(crate) fn places(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("the limit has 32 bits")
    }

    pub(crate) fn place(&self, key: &Key) -> Option<u32> {
        self.index.find(key.hash(), |&place| self.at(place).key == *key).copied()
    }

    /// The entry at a place that [`Table::place`] returned.
    pub(crate) fn at(&self, place: u32) -> &Entry {
        self.entries[place as usize].as_ref().expect("the place is taken")
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Entry {
        self.entries[place as usize].as_mut().expect("the place is taken")
    }

    pub(crate) fn is_taken(&self, place: u32) -> bool {
        self.entries.get(place as usize).is_some_and(Option::is_some)
    }

    pub(crate) fn find_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        let place = self.place(key)?;
        Some(self.at_mut(place))
    }

    pub(crate) fn idle_longest(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Adds an entry whose key is not in the table, as the last in the order.
    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.places() - 1
        });
        let hash = entry.key.hash();
        self.entries[place as usize] = Some(entry);
        let entries = &self.entries;
        let rehash = |place: &u32| entries[*place as usize].as_ref().map_or(0, |it| it.key.hash());
        self.index.insert_unique(hash, place, rehash);
        self.push_last(place);
        place
    }

    pub(crate) fn remove(&mut self, place: u32) -> Entry {
        self.unlink(place);
        let entry = self.entries[place as usize].take().expect("the place is taken");
        match self.index.find_entry(entry.key.hash(), |&other| other == place) {
            Ok(found) => drop(found.remove()),
            Err(_) => unreachable!("every entry is in the index"),
        }
        self.vacant.push(place);
        entry
    }

    /// Notes that the entry was used now.
    pub(crate) fn touch(&mut self, place: u32, now_ms: u64) {
        self.unlink(place);
        self.at_mut(place).used_ms = now_ms;
        self.push_last(place);
    }

    fn push_last(&mut self, place: u32) {
        let last = std::mem::replace(&mut self.last, place);
        let entry = self.at_mut(place);
        (entry.before, entry.after) = (last, NONE);
        match last {
            NONE => self.first = place,
            last => self.at_mut(last).after = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        let Entry { before, after, .. } = *self.at(place);
        match before {
            NONE => self.first = after,
            before => self.at_mut(before).after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.at_mut(after).before = before,
        }
    }

    /// All entries; the one that was idle longest is first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            if next == NONE {
                return None;
            }
            let entry = self.at(next);
            next = entry.after;
            Some(entry)
        })
    }

    /// Checks every invariant. It examines all entries.
    pub(crate) fn check(&self) {
        let (mut used, mut count) = (0, 0);
        for entry in self.iter() {
            assert!(used <= entry.used_ms, "the entry that was idle longest is first");
            used = entry.used_ms;
            count += 1;
            assert!(self.place(&entry.key).is_some(), "every entry is found by its key");
        }
        assert_eq!(count, self.length(), "the order has all entries");
        let places = self.length() + self.vacant.len();
        assert_eq!(places, self.entries.len(), "every place is taken or vacant");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory per entry of a table of `entries` entries, in bytes.
    fn bytes_per_entry(entries: usize) -> usize {
        // A bucket of the index holds a place and a control byte; at most 7 of 8 are used.
        let buckets = (entries * 8 / 7 + 1).next_power_of_two();
        let index = buckets * (size_of::<u32>() + 1);
        size_of::<Option<Entry>>() + index.div_ceil(entries)
    }

    #[test]
    fn an_entry_needs_less_than_100_bytes() {
        for entries in [1000, 100_000, 1_000_000, 1 << 20, (1 << 20) * 7 / 8, (1 << 20) * 7 / 8 + 1]
        {
            let bytes = bytes_per_entry(entries);
            assert!(bytes <= 100, "{entries} entries: {bytes} bytes each");
            let table = Table::with_capacity(u32::try_from(entries).unwrap());
            let real = table.index.allocation_size()
                + table.entries.capacity() * size_of::<Option<Entry>>();
            assert!(real <= entries * 100, "{entries} entries: {real} bytes");
        }
    }

    #[test]
    fn entries_are_found_and_ordered_by_use() {
        let key = |number: u8| Key::new(crate::key::Secret(0, 0), &[number]);
        let mut table = Table::with_capacity(4);
        for number in 0..9 {
            table.insert(Entry::new(key(number), Target(number.into()), number.into(), 0));
        }
        table.touch(table.place(&key(3)).unwrap(), 20);
        table.remove(table.place(&key(0)).unwrap());
        table.check();
        let order: Vec<u64> = table.iter().map(|entry| entry.target.0).collect();
        assert_eq!(order, [1, 2, 4, 5, 6, 7, 8, 3]);
        assert_eq!(table.insert(Entry::new(key(9), Target(9), 21, 0)), 0, "places are used again");
        assert!(table.place(&key(0)).is_none() && table.is_taken(0) && !table.is_taken(9));
    }
}
