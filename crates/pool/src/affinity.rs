//! Session affinity: a table of clients and the workers that they are bound to.
//!
//! Two clients never share an entry: a key of up to 22 bytes is stored as it is, a longer one as the first 22 bytes of
//! its SHA-256. An entry expires when it was not used for its lifetime. When the table is full, the entry that was idle
//! longest is evicted. All memory is reserved at the start and touched when it is used: about 70 bytes per entry. The
//! table never pauses to grow.

mod shared;

use std::hash::Hasher;
use std::time::{Duration, Instant};

use exchange::{BindingChange, BindingUse, SharedKey};
use hashbrown::HashTable;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;

use crate::list::{Links, List};
use shared::{Mark, SharedUses};

pub use shared::shared_key;

/// The maximum length of a key that is stored as it is, in bytes.
const INLINE: usize = 22;
/// The value of `length` if the bytes are a digest.
const DIGEST: u8 = 23;
/// The maximum number of expired entries that one operation removes.
const EXPIRED_AT_ONCE: usize = 4;

/// The key of a client, as it is stored in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The number of bytes in use, or `DIGEST`.
    length: u8,
    bytes: [u8; INLINE],
}

impl Key {
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        match u8::try_from(key.len()) {
            Ok(length) if key.len() <= INLINE => {
                bytes[..key.len()].copy_from_slice(key);
                Self { length, bytes }
            }
            _ => {
                bytes.copy_from_slice(&Sha256::digest(key)[..INLINE]);
                Self { length: DIGEST, bytes }
            }
        }
    }

    /// The key of a shared table: the first bytes. They are the whole key, because it was made by [`shared_key`].
    fn shared(&self) -> SharedKey {
        let (first, _) = self.bytes.split_first_chunk().expect("a key has more bytes");
        SharedKey(*first)
    }

    /// The position on the hash ring. It is the same in every daemon.
    pub(crate) fn hash(&self) -> u64 {
        hash((0, 0), self)
    }
}

impl From<SharedKey> for Key {
    fn from(key: SharedKey) -> Self {
        Self::new(&key.0)
    }
}

/// The target that a client is bound to. The pool maps it to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AffinityTarget(pub(crate) u64);

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    /// Of a shared table: when its use was reported.
    mark: Mark,
    affinity_target: AffinityTarget,
    /// When the entry was last used, in milliseconds since the start of the table.
    used_ms: u64,
}

/// Limits of the table of bound clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityLimits {
    /// A client without a request for this time is no longer bound.
    pub lifetime: Duration,
    /// The maximum number of bound clients. Above it, the one that was idle longest is removed.
    pub entries: u32,
}

impl Default for AffinityLimits {
    /// 100,000 clients, for one hour.
    fn default() -> Self {
        Self { lifetime: Duration::from_secs(3600), entries: 100_000 }
    }
}

/// The clients and their affinity targets.
#[derive(Debug)]
pub(crate) struct Affinity {
    limits: AffinityLimits,
    start: Instant,
    /// Prevents clients from choosing keys that collide.
    secret: (u64, u64),
    index: HashTable<u32>,
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    /// The entry that was idle longest is first.
    order: List,
    links: Links,
    evicted: u64,
    /// What other daemons must learn, if the table is shared.
    shared: Option<Box<SharedUses>>,
}

impl Affinity {
    pub(crate) fn new(limits: AffinityLimits, now: Instant, secret: (u64, u64)) -> Self {
        let room = limits.entries.max(1) as usize;
        let mut links = Links::default();
        links.reserve(room);
        Self {
            limits,
            start: now,
            secret,
            index: HashTable::with_capacity(room),
            entries: Vec::with_capacity(room),
            vacant: Vec::new(),
            order: List::EMPTY,
            links,
            evicted: 0,
            shared: None,
        }
    }

    /// Shares the table with other daemons: its keys are those of [`shared_key`], and uses are recorded.
    pub(crate) fn share(&mut self) {
        let uses = || Box::new(SharedUses::new(self.limits.lifetime));
        self.shared.get_or_insert_with(uses);
    }

    /// Sets the limits. Bound clients stay bound as far as there is room; if there is less room, those that were idle
    /// longest are removed.
    pub(crate) fn handle_limits(&mut self, now: Instant, limits: AffinityLimits) {
        if self.limits == limits {
            return;
        }
        let mut other = Self::new(limits, self.start, self.secret);
        other.evicted = self.evicted;
        let beyond = self.order.length().saturating_sub(limits.entries.max(1));
        other.evicted += u64::from(beyond);
        for place in self.order.iter(&self.links).skip(beyond as usize) {
            let Entry { key, mark: _, affinity_target, used_ms } = self.entries[place as usize];
            other.bind(self.start + Duration::from_millis(used_ms), &key, affinity_target);
        }
        // The next use of each client is reported again.
        other.shared = self.shared.take();
        other.expire(now);
        *self = other;
    }

    pub(crate) const fn length(&self) -> u32 {
        self.order.length()
    }

    /// Clients whose binding was removed early to make room for others.
    pub(crate) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the affinity target of this client. The lookup counts as use.
    pub(crate) fn find(&mut self, now: Instant, key: &Key) -> Option<AffinityTarget> {
        self.expire(now);
        let place = self.place(key)?;
        if self.is_over(place, now) {
            self.remove(place);
            return None;
        }
        self.touch(place, now);
        self.report_use(place);
        Some(self.entries[place as usize].affinity_target)
    }

    /// Binds this client. An earlier binding is replaced.
    pub(crate) fn bind(&mut self, now: Instant, key: &Key, affinity_target: AffinityTarget) {
        self.expire(now);
        if let Some(place) = self.place(key) {
            let entry = &mut self.entries[place as usize];
            let before = std::mem::replace(&mut entry.affinity_target, affinity_target);
            self.touch(place, now);
            if before == affinity_target {
                self.report_use(place);
            } else {
                self.report(place, Some(before));
            }
            return;
        }
        let place = self.insert(now, key, affinity_target);
        self.report(place, None);
    }

    /// Adds a client that is not in the table.
    fn insert(&mut self, now: Instant, key: &Key, affinity_target: AffinityTarget) -> u32 {
        if self.order.length() >= self.limits.entries.max(1) {
            let oldest = self.order.first().expect("a full table has an oldest entry");
            self.remove(oldest);
            self.evicted += 1;
        }
        let mark = Mark::default();
        let entry = Entry { key: *key, mark, affinity_target, used_ms: self.ms(now) };
        let place = match self.vacant.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                let place = u32::try_from(self.entries.len()).expect("the limit has 32 bits");
                self.entries.push(entry);
                self.links.cover(place);
                place
            }
        };
        let (secret, entries) = (self.secret, &self.entries);
        let rehash = |place: &u32| hash(secret, &entries[*place as usize].key);
        self.index.insert_unique(hash(secret, key), place, rehash);
        self.order.push_last(&mut self.links, place);
        place
    }

    /// Records the use of an entry, if its last report is too old.
    #[inline]
    fn report_use(&mut self, place: u32) {
        let Some(shared) = &mut self.shared else { return };
        let entry = self.entries[place as usize];
        if !entry.mark.is_reported(shared.period(entry.used_ms)) {
            self.report(place, Some(entry.affinity_target));
        }
    }

    /// Records that an entry was used. If there is no room for the record, the next use is recorded.
    fn report(&mut self, place: u32, before: Option<AffinityTarget>) {
        let Some(shared) = &mut self.shared else { return };
        let entry = &mut self.entries[place as usize];
        let period = shared.period(entry.used_ms);
        let before = before.map(|before| before.0);
        let target = entry.affinity_target.0;
        let is_recorded = shared.push(BindingUse { key: entry.key.shared(), before, target });
        entry.mark = if is_recorded { Mark::reported(period) } else { Mark::unreported(period) };
    }

    /// Returns what other daemons must learn, and forgets it.
    pub(crate) fn take_uses(&mut self) -> Vec<BindingUse> {
        self.shared.as_mut().map(|shared| shared.take()).unwrap_or_default()
    }

    /// Takes back uses that could not be sent.
    pub(crate) fn return_uses(&mut self, uses: Vec<BindingUse>) {
        if let Some(shared) = &mut self.shared {
            shared.put_back(uses);
        }
    }

    /// Uses that could not be recorded because too many waited.
    pub(crate) fn uses_dropped(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.dropped())
    }

    /// Another daemon has bound, used or unbound a client.
    pub(crate) fn adopt(&mut self, now: Instant, change: &BindingChange) {
        if self.shared.is_none() {
            return;
        }
        self.expire(now);
        let key = Key::from(change.key);
        let place = self.place(&key);
        let Some(target) = change.target.map(AffinityTarget) else {
            if let Some(place) = place {
                self.remove(place);
            }
            return;
        };
        let place = match place {
            Some(place) => {
                self.touch(place, now);
                place
            }
            None => self.insert(now, &key, target),
        };
        let entry = &mut self.entries[place as usize];
        entry.affinity_target = target;
        entry.mark = Mark::REMOTE;
    }

    fn ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    fn is_over(&self, place: u32, now: Instant) -> bool {
        let rested = self.ms(now).saturating_sub(self.entries[place as usize].used_ms);
        let late = match &self.shared {
            Some(shared) if self.entries[place as usize].mark.is_remote() => shared.late_ms(),
            _ => 0,
        };
        u128::from(rested) >= self.limits.lifetime.as_millis() + u128::from(late)
    }

    fn place(&self, key: &Key) -> Option<u32> {
        let same = |place: &u32| self.entries[*place as usize].key == *key;
        self.index.find(hash(self.secret, key), same).copied()
    }

    fn touch(&mut self, place: u32, now: Instant) {
        self.entries[place as usize].used_ms = self.ms(now);
        self.order.remove(&mut self.links, place);
        self.order.push_last(&mut self.links, place);
    }

    fn remove(&mut self, place: u32) {
        let key = self.entries[place as usize].key;
        let entry = self.index.find_entry(hash(self.secret, &key), |other| *other == place);
        let Ok(entry) = entry else { unreachable!("every entry is in the index") };
        entry.remove();
        self.order.remove(&mut self.links, place);
        self.vacant.push(place);
    }

    /// Removes some expired entries: more than are added, so that none stays forever.
    fn expire(&mut self, now: Instant) {
        for _ in 0..EXPIRED_AT_ONCE {
            match self.order.first() {
                Some(oldest) if self.is_over(oldest, now) => self.remove(oldest),
                _ => return,
            }
        }
    }

    /// Checks every invariant. It examines all entries.
    pub(crate) fn check(&self) {
        let mut used = 0;
        for place in self.order.iter(&self.links) {
            let entry = &self.entries[place as usize];
            assert!(used <= entry.used_ms, "who rested longest is first");
            used = entry.used_ms;
            assert_eq!(self.place(&entry.key), Some(place), "every entry is found by its key");
        }
        assert_eq!(self.index.len(), self.order.length() as usize, "the index holds them all");
        let all = self.order.length() as usize + self.vacant.len();
        assert_eq!(all, self.entries.len(), "every place is taken or vacant");
        assert!(self.order.length() <= self.limits.entries.max(1), "never over the limit");
    }
}

fn hash(secret: (u64, u64), key: &Key) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(secret.0, secret.1);
    hasher.write_u8(key.length);
    hasher.write(&key.bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn table(entries: u32, lifetime_ms: u64) -> (Affinity, Instant) {
        let limits = AffinityLimits { lifetime: Duration::from_millis(lifetime_ms), entries };
        let now = start();
        (Affinity::new(limits, now, (1, 2)), now)
    }

    #[test]
    fn it_does_what_a_list_would_do() {
        let (mut table, start) = table(16, 100);
        // Key, affinity target, last use. The entry that was idle longest is first.
        let mut naive: Vec<(Vec<u8>, u64, u64)> = Vec::new();
        let mut random = Random::new(1);
        let (mut ms, mut evicted) = (0, 0);
        for affinity_target in 0..20_000 {
            ms += random.below(9);
            let now = start + Duration::from_millis(ms);
            let mut key = vec![b'k'; usize::try_from(random.below(40)).unwrap()];
            key.push(u8::try_from(random.below(2)).unwrap());
            naive.retain(|entry| ms - entry.2 < 100);
            let at = naive.iter().position(|entry| entry.0 == key);
            let mut entry = at.map(|at| naive.remove(at));
            if random.below(2) == 0 {
                assert_eq!(
                    table.find(now, &Key::new(&key)),
                    entry.as_ref().map(|entry| AffinityTarget(entry.1))
                );
            } else {
                if at.is_none() && naive.len() == 16 {
                    naive.remove(0);
                    evicted += 1;
                }
                table.bind(now, &Key::new(&key), AffinityTarget(affinity_target));
                entry = Some((key, affinity_target, 0));
            }
            naive.extend(entry.map(|entry| (entry.0, entry.1, ms)));
            table.check();
        }
        // Expired entries may have made room instead of others.
        assert!(table.evicted() <= evicted && evicted > 0);
    }

    #[test]
    fn long_keys_that_begin_alike_are_not_the_same_client() {
        let (mut table, now) = table(10, 1000);
        let long = |last| [vec![b'x'; 100], vec![last]].concat();
        table.bind(now, &Key::new(&long(1)), AffinityTarget(1));
        table.bind(now, &Key::new(&long(2)), AffinityTarget(2));
        assert_eq!(table.find(now, &Key::new(&long(1))), Some(AffinityTarget(1)));
        assert_eq!(table.find(now, &Key::new(&long(2))), Some(AffinityTarget(2)));
        assert_eq!(table.find(now, &Key::new(&long(3))), None);
    }

    #[test]
    fn other_limits_let_go_only_of_those_for_whom_there_is_no_room() {
        let (mut table, start) = table(10, 1000);
        let at = |ms| start + Duration::from_millis(ms);
        for (ms, key) in [(0, b"a"), (10, b"b"), (20, b"c")] {
            table.bind(at(ms), &Key::new(key), AffinityTarget(ms));
        }
        let limits = AffinityLimits { lifetime: Duration::from_millis(50), entries: 2 };
        table.handle_limits(at(30), limits);
        table.check();
        assert_eq!((table.length(), table.evicted()), (2, 1));
        assert_eq!(table.find(at(31), &Key::new(b"b")), Some(AffinityTarget(10)));
        assert_eq!(table.find(at(31), &Key::new(b"a")), None);
        assert_eq!(table.find(at(75), &Key::new(b"c")), None, "its lifetime is over now");
        let limits = AffinityLimits { lifetime: Duration::from_secs(9), entries: 9 };
        table.handle_limits(at(80), limits);
        table.check();
        assert_eq!(table.find(at(8000), &Key::new(b"b")), Some(AffinityTarget(10)));
    }

    #[test]
    fn a_shared_table_reports_each_binding_and_a_use_per_period_and_adopts_those_of_others() {
        let (mut table, start) = table(10, 16_000);
        table.share();
        let at = |ms| start + Duration::from_millis(ms);
        let key = SharedKey(shared_key((1, 2), b"client"));
        let used = |before, target| vec![BindingUse { key, before, target }];
        table.bind(at(0), &key.into(), AffinityTarget(1));
        assert_eq!(table.take_uses(), used(None, 1));
        table.find(at(900), &key.into());
        table.bind(at(900), &key.into(), AffinityTarget(1));
        assert_eq!(table.take_uses(), [], "its use was reported in this period");
        table.find(at(1100), &key.into());
        assert_eq!(table.take_uses(), used(Some(1), 1));
        table.bind(at(1200), &key.into(), AffinityTarget(2));
        assert_eq!(table.take_uses(), used(Some(1), 2));
        table.adopt(at(1300), &BindingChange { key, target: Some(3) });
        assert_eq!(table.take_uses(), []);
        assert_eq!(table.find(at(1301), &key.into()), Some(AffinityTarget(3)));
        assert_eq!(table.take_uses(), used(Some(3), 3), "the first use here");
        table.adopt(at(1400), &BindingChange { key, target: Some(3) });
        assert_eq!(
            table.find(at(20_000), &key.into()),
            Some(AffinityTarget(3)),
            "a quarter longer"
        );
        assert_eq!(table.find(at(36_500), &key.into()), None);
        table.adopt(at(36_600), &BindingChange { key, target: Some(3) });
        table.adopt(at(36_700), &BindingChange { key, target: None });
        assert_eq!(table.find(at(36_800), &key.into()), None);
        table.check();
    }

    #[test]
    fn uses_beyond_the_room_are_counted_and_reported_by_the_next_use() {
        let (mut table, start) = table(70_000, 16_000);
        table.share();
        let key = |number: u32| SharedKey(shared_key((1, 2), &number.to_le_bytes()));
        for number in 0..65_600 {
            table.bind(start, &key(number).into(), AffinityTarget(1));
        }
        assert_eq!((table.uses_dropped(), table.take_uses().len()), (64, 65_536));
        table.find(start, &key(65_599).into());
        let used = BindingUse { key: key(65_599), before: Some(1), target: 1 };
        assert_eq!(table.take_uses(), [used]);
        assert_eq!(size_of::<Entry>(), 40, "the mark needs no memory");
    }

    #[test]
    fn use_keeps_an_entry_and_the_oldest_idle_one_is_evicted() {
        let (mut table, start) = table(2, 1000);
        let at = |ms| start + Duration::from_millis(ms);
        table.bind(at(0), &Key::new(b"a"), AffinityTarget(1));
        table.bind(at(1), &Key::new(b"b"), AffinityTarget(2));
        assert_eq!(table.find(at(900), &Key::new(b"a")), Some(AffinityTarget(1)));
        table.bind(at(901), &Key::new(b"c"), AffinityTarget(3));
        assert_eq!((table.find(at(902), &Key::new(b"b")), table.evicted()), (None, 1));
        assert_eq!(table.find(at(1800), &Key::new(b"a")), Some(AffinityTarget(1)));
        assert_eq!(table.find(at(2800), &Key::new(b"a")), None, "its lifetime is over");
        assert_eq!(table.length(), 0);
    }
}
