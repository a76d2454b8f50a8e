//! A lazy hierarchical timing wheel.
//!
//! What it is: alarms at ticks of one millisecond, which are set, moved and cancelled in constant time. What it depends
//! on: numbers. What it must never depend on: a clock, a stream, the user of an alarm.
//!
//! Nearly all alarms are postponed again and again, and hardly any fires. Therefore *postponing writes only one word*:
//! the alarm stays in its slot, and is moved to its new slot only when the old slot is reached. Only an earlier time
//! moves an alarm immediately.
//!
//! ```text
//!   level 0   64 slots of 1 tick        an alarm is filed at the level of the highest bit in
//!   level 1   64 slots of 64 ticks      which its tick differs from the current one; when a slot
//!   …                                   of a higher level is reached, its alarms move to lower ones
//!   level 5   64 slots of 2^30 ticks    two years in total; later alarms are filed at the end
//! ```
//!
//! Invariants: `filed ≤ due` for every filed alarm; `elapsed` never decreases; an alarm is in at most one list; a
//! bit of a level is set if and only if its slot holds alarms.

const LEVELS: u32 = 6;
const SLOTS: u64 = 64;
/// For each level, the number of bits by which a tick is shifted to find its slot.
const SHIFTS: [u32; LEVELS as usize] = [0, 6, 12, 18, 24, 30];
/// The maximum distance in ticks from the current tick at which an alarm can be filed: one slot less than a full round
/// of the last level, so that the current slot is never confused with a future one.
const SPAN: u64 = (SLOTS - 1) << SHIFTS[LEVELS as usize - 1];
/// The index of the list of alarms that were already due when they were set; the lists before it belong to the slots.
const DUE: u32 = LEVELS * 64;
const LISTS: usize = DUE as usize + 1;
/// No list, no alarm.
const NONE: u32 = u32::MAX;
/// Instead of a list: the alarm has fired and was not collected yet.
const FIRED: u32 = NONE - 1;
/// A time that is never reached.
const NEVER: u64 = u64::MAX;
/// The last tick to which an alarm can be set.
pub(crate) const TICK_MAX: u64 = NEVER - 1;

/// An alarm of the wheel. It is valid until [`Wheel::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm(u32);

impl Alarm {
    /// No alarm; saves the word that an `Option` would need.
    pub(crate) const NONE: Self = Self(NONE);
}

#[derive(Debug)]
struct Node<K> {
    /// The tick at which it should fire, or `NEVER`.
    due: u64,
    /// The tick at which it is filed, or `NEVER` if it is in no list.
    filed: u64,
    /// The list that contains it, or `NONE`, or `FIRED`.
    list: u32,
    previous: u32,
    next: u32,
    key: K,
}

#[derive(Debug)]
pub(crate) struct Wheel<K> {
    nodes: Vec<Node<K>>,
    free: Vec<u32>,
    heads: [u32; LISTS],
    occupied: [u64; LEVELS as usize],
    /// All alarms of this tick and of earlier ticks were processed.
    elapsed: u64,
    /// How many times an alarm was put into a list, which is the work that laziness saves.
    filings: u64,
}

impl<K: Copy> Wheel<K> {
    pub(crate) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            heads: [NONE; LISTS],
            occupied: [0; LEVELS as usize],
            elapsed: 0,
            filings: 0,
        }
    }

    /// Creates an alarm that is not set.
    pub(crate) fn create(&mut self, key: K) -> Alarm {
        let node = Node { due: NEVER, filed: NEVER, list: NONE, previous: NONE, next: NONE, key };
        if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            return Alarm(index);
        }
        let index = u32::try_from(self.nodes.len())
            .ok()
            .filter(|&index| index != NONE)
            .expect("memory runs out long before 2^32 alarms");
        self.nodes.push(node);
        Alarm(index)
    }

    /// Sets the alarm to `tick` (at most [`TICK_MAX`]) and replaces an earlier setting. An alarm that is not in the
    /// future fires at the next [`Self::advance`]. Returns false for [`Alarm::NONE`].
    #[inline]
    pub(crate) fn set(&mut self, alarm: Alarm, tick: u64) -> bool {
        debug_assert!(tick <= TICK_MAX, "it would count as unset");
        let Some(node) = self.nodes.get_mut(alarm.0 as usize) else { return false };
        node.due = tick;
        if tick < node.filed {
            self.refile(alarm.0);
        }
        true
    }

    /// Files an alarm at its new time. If it has fired, is not collected yet and is already due again, it stays to be
    /// collected. Otherwise an alarm that is set again whenever another one fires would never be delivered.
    #[cold]
    fn refile(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        if node.list == FIRED && node.due <= self.elapsed {
            node.due = NEVER;
            return;
        }
        self.unlink(index);
        self.file(index);
    }

    /// Disarms the alarm.
    pub(crate) fn disarm(&mut self, alarm: Alarm) {
        let node = &mut self.nodes[alarm.0 as usize];
        node.due = NEVER;
        if node.list == FIRED {
            node.list = NONE;
        }
    }

    /// Removes the alarm. Its number is reused.
    pub(crate) fn remove(&mut self, alarm: Alarm) {
        self.unlink(alarm.0);
        self.free.push(alarm.0);
    }

    /// Advances the current tick to `now` and appends the alarms that fire to `fired`. Pass each of them to
    /// [`Self::collect`], which returns whether it is still to be delivered.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64, fired: &mut Vec<Alarm>) {
        if now > self.elapsed || self.heads[DUE as usize] != NONE {
            self.advance_to(now.max(self.elapsed), fired);
        }
    }

    fn advance_to(&mut self, now: u64, fired: &mut Vec<Alarm>) {
        self.empty(DUE, now, fired);
        while let Some((tick, list)) = self.next_slot() {
            if tick > now {
                break;
            }
            self.elapsed = tick;
            self.empty(list, now, fired);
        }
        self.elapsed = now;
    }

    /// Returns the key of an alarm that has fired, unless it was postponed, disarmed or removed since.
    pub(crate) fn collect(&mut self, alarm: Alarm) -> Option<K> {
        let node = &mut self.nodes[alarm.0 as usize];
        if node.list != FIRED {
            return None;
        }
        node.list = NONE;
        Some(node.key)
    }

    /// The tick at which [`Self::advance`] has work to do. It is never later than the next alarm.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        if self.heads[DUE as usize] != NONE {
            return Some(self.elapsed);
        }
        self.next_slot().map(|(tick, _)| tick)
    }

    /// How many times an alarm was put into a list.
    pub(crate) const fn filings(&self) -> u64 {
        self.filings
    }

    /// Returns the first slot in time that holds alarms, and the tick at which it begins.
    fn next_slot(&self) -> Option<(u64, u32)> {
        // A slot of a lower level always begins before any slot of a higher one, because the higher levels hold only
        // ticks that differ from the current one in higher bits.
        let (level, &occupied) = (0..).zip(&self.occupied).find(|&(_, &bits)| bits != 0)?;
        let present = self.elapsed >> SHIFTS[level as usize];
        let ahead = occupied.rotate_right((present % SLOTS) as u32).trailing_zeros();
        let coming = present + u64::from(ahead);
        Some((coming << SHIFTS[level as usize], list_of(level, coming)))
    }

    /// Empties a list: alarms up to `now` fire, the others are filed at their time.
    fn empty(&mut self, list: u32, now: u64, fired: &mut Vec<Alarm>) {
        let mut index = std::mem::replace(&mut self.heads[list as usize], NONE);
        self.clear_bit(list);
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            let next = node.next;
            node.list = NONE;
            node.filed = NEVER;
            if node.due <= now {
                node.due = NEVER;
                node.list = FIRED;
                fired.push(Alarm(index));
            } else if node.due != NEVER {
                self.file(index);
            }
            index = next;
        }
    }

    /// Files an alarm that is in no list at its time.
    fn file(&mut self, index: u32) {
        self.filings += 1;
        let due = self.nodes[index as usize].due;
        let (filed, list) = if due <= self.elapsed {
            (due, DUE)
        } else {
            let filed = due.min(self.elapsed.saturating_add(SPAN));
            let highest = (filed ^ self.elapsed).ilog2();
            let level = (highest / SHIFTS[1]).min(LEVELS - 1);
            let list = list_of(level, filed >> SHIFTS[level as usize]);
            self.occupied[level as usize] |= 1 << (list % 64);
            (filed, list)
        };
        let head = std::mem::replace(&mut self.heads[list as usize], index);
        if head != NONE {
            self.nodes[head as usize].previous = index;
        }
        let node = &mut self.nodes[index as usize];
        node.filed = filed;
        node.list = list;
        node.previous = NONE;
        node.next = head;
    }

    /// Removes an alarm from its list, if it is in one.
    fn unlink(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let (list, previous, next) = (node.list, node.previous, node.next);
        node.list = NONE;
        if node.filed == NEVER {
            return;
        }
        node.filed = NEVER;
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if previous != NONE {
            self.nodes[previous as usize].next = next;
            return;
        }
        self.heads[list as usize] = next;
        if next == NONE {
            self.clear_bit(list);
        }
    }

    fn clear_bit(&mut self, list: u32) {
        if list != DUE {
            self.occupied[(list / 64) as usize] &= !(1 << (list % 64));
        }
    }

    /// Checks the invariants of the module for the whole wheel.
    #[cfg(test)]
    fn check(&self) {
        for (list, &head) in (0..).zip(&self.heads) {
            if list != DUE {
                let bit = self.occupied[(list / 64) as usize] >> (list % 64) & 1;
                assert_eq!(bit == 1, head != NONE, "the bit of list {list}");
            }
            let (mut index, mut previous) = (head, NONE);
            while index != NONE {
                let node = &self.nodes[index as usize];
                assert_eq!((node.list, node.previous), (list, previous));
                assert!(node.filed <= node.due, "filed too late");
                assert!(list == DUE || node.filed > self.elapsed, "filed in the past");
                (previous, index) = (index, node.next);
            }
        }
    }
}

/// The list of slot number `slot`, counted in slots of this level.
const fn list_of(level: u32, slot: u64) -> u32 {
    level * 64 + (slot % SLOTS) as u32
}

#[cfg(test)]
mod tests;
