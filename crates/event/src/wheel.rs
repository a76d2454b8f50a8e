//! A lazy hierarchical timing wheel.
//!
//! What it is: alarms at ticks of one millisecond, set, moved and cancelled in constant time.
//! What it knows: numbers. What it must never know: a clock, a stream, who waits.
//!
//! Nearly all alarms are put off again and again and hardly any rings, so *putting off writes one
//! word*: an alarm stays filed where it was, and only when that slot comes up is it filed anew.
//! Only an earlier time moves it at once.
//!
//! ```text
//!   level 0   64 slots of 1 tick        an alarm is filed at the level of the highest bit in
//!   level 1   64 slots of 64 ticks      which its tick differs from the present one; a slot of
//!   …                                   a higher level that comes up is dealt out to lower ones
//!   level 5   64 slots of 2^30 ticks    in all two years; what lies beyond is filed at the end
//! ```
//!
//! Laws: `filed ≤ wanted` for every filed alarm; `elapsed` never decreases; an alarm is in at most
//! one list; a bit of a level is set exactly when its slot holds alarms.

const LEVELS: u32 = 6;
const SLOTS: u64 = 64;
/// By how many bits a tick is shifted to find its slot in each level.
const SHIFTS: [u32; LEVELS as usize] = [0, 6, 12, 18, 24, 30];
/// The farthest tick at which an alarm can be filed, seen from the present one: one slot of the
/// last level less than its turn, so that the present slot is never taken for one to come.
const SPAN: u64 = (SLOTS - 1) << SHIFTS[LEVELS as usize - 1];
/// The list of alarms whose time had come when they were set; before it, one list a slot.
const DUE: u32 = LEVELS * 64;
const LISTS: usize = DUE as usize + 1;
/// No list, no alarm.
const NONE: u32 = u32::MAX;
/// In place of a list: it has rung and its ring was not collected yet.
const RUNG: u32 = NONE - 1;
/// A time that does not come.
const NEVER: u64 = u64::MAX;
/// The last tick that an alarm can be set to.
pub(crate) const TICK_MAX: u64 = NEVER - 1;

/// An alarm of the wheel. It stays valid until [`Wheel::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm(u32);

impl Alarm {
    /// No alarm; saves the word that an `Option` would take.
    pub(crate) const NONE: Self = Self(NONE);
}

#[derive(Debug)]
struct Node<K> {
    /// When it shall ring, or `NEVER`.
    wanted: u64,
    /// Where it is filed, or `NEVER` if it is in no list.
    filed: u64,
    /// The list it is in, or `NONE`, or `RUNG`.
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
    /// All alarms of this tick and before have been dealt with.
    elapsed: u64,
    /// How many times an alarm was put into a list: the work that laziness saves.
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

    /// A new alarm that is not set.
    pub(crate) fn create(&mut self, key: K) -> Alarm {
        let node =
            Node { wanted: NEVER, filed: NEVER, list: NONE, previous: NONE, next: NONE, key };
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

    /// Lets the alarm ring at `tick`, at most [`TICK_MAX`], in place of any earlier setting. What is
    /// not in the future rings at the next [`Self::advance`]. False for [`Alarm::NONE`].
    #[inline]
    pub(crate) fn set(&mut self, alarm: Alarm, tick: u64) -> bool {
        debug_assert!(tick <= TICK_MAX, "it would count as unset");
        let Some(node) = self.nodes.get_mut(alarm.0 as usize) else { return false };
        node.wanted = tick;
        if tick < node.filed {
            self.refile(alarm.0);
        }
        true
    }

    /// Files an alarm where it is wanted now. One that has rung and is wanted at once is left to be
    /// collected: otherwise an alarm that is set again whenever another one rings would never be heard.
    #[cold]
    fn refile(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        if node.list == RUNG && node.wanted <= self.elapsed {
            node.wanted = NEVER;
            return;
        }
        self.unlink(index);
        self.file(index);
    }

    /// Lets the alarm not ring.
    pub(crate) fn disarm(&mut self, alarm: Alarm) {
        let node = &mut self.nodes[alarm.0 as usize];
        node.wanted = NEVER;
        if node.list == RUNG {
            node.list = NONE;
        }
    }

    /// Ends the alarm. Its number is reused.
    pub(crate) fn remove(&mut self, alarm: Alarm) {
        self.unlink(alarm.0);
        self.free.push(alarm.0);
    }

    /// Moves the present to `now` and adds what rings to `rung`; each is to be collected by
    /// [`Self::collect`], which tells whether it is still to be heard.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64, rung: &mut Vec<Alarm>) {
        if now > self.elapsed || self.heads[DUE as usize] != NONE {
            self.advance_to(now.max(self.elapsed), rung);
        }
    }

    fn advance_to(&mut self, now: u64, rung: &mut Vec<Alarm>) {
        self.empty(DUE, now, rung);
        while let Some((tick, list)) = self.next_slot() {
            if tick > now {
                break;
            }
            self.elapsed = tick;
            self.empty(list, now, rung);
        }
        self.elapsed = now;
    }

    /// The key of an alarm that rang, unless it was put off, disarmed or removed since.
    pub(crate) fn collect(&mut self, alarm: Alarm) -> Option<K> {
        let node = &mut self.nodes[alarm.0 as usize];
        if node.list != RUNG {
            return None;
        }
        node.list = NONE;
        Some(node.key)
    }

    /// The tick at which [`Self::advance`] has work to do, which is never after the next ring.
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

    /// The first slot in time that holds alarms, and the tick at which it begins.
    fn next_slot(&self) -> Option<(u64, u32)> {
        // A slot of a lower level always begins before any of a higher one: the higher levels hold
        // only ticks that differ from the present one in higher bits.
        let (level, &occupied) = (0..).zip(&self.occupied).find(|&(_, &bits)| bits != 0)?;
        let present = self.elapsed >> SHIFTS[level as usize];
        let ahead = occupied.rotate_right((present % SLOTS) as u32).trailing_zeros();
        let coming = present + u64::from(ahead);
        Some((coming << SHIFTS[level as usize], list_of(level, coming)))
    }

    /// Deals out a list: rings what is wanted by `now`, files the rest where it is wanted.
    fn empty(&mut self, list: u32, now: u64, rung: &mut Vec<Alarm>) {
        let mut index = std::mem::replace(&mut self.heads[list as usize], NONE);
        self.clear_bit(list);
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            let next = node.next;
            node.list = NONE;
            node.filed = NEVER;
            if node.wanted <= now {
                node.wanted = NEVER;
                node.list = RUNG;
                rung.push(Alarm(index));
            } else if node.wanted != NEVER {
                self.file(index);
            }
            index = next;
        }
    }

    /// Puts an alarm that is in no list where it is wanted.
    fn file(&mut self, index: u32) {
        self.filings += 1;
        let wanted = self.nodes[index as usize].wanted;
        let (filed, list) = if wanted <= self.elapsed {
            (wanted, DUE)
        } else {
            let filed = wanted.min(self.elapsed.saturating_add(SPAN));
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

    /// Takes an alarm out of its list, if it is in one.
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

    /// Checks the laws above over the whole wheel.
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
                assert!(node.filed <= node.wanted, "filed too late");
                assert!(list == DUE || node.filed > self.elapsed, "filed in the past");
                (previous, index) = (index, node.next);
            }
        }
    }
}

/// The list of the slot that `slot` falls into, counted in slots of this level.
const fn list_of(level: u32, slot: u64) -> u32 {
    level * 64 + (slot % SLOTS) as u32
}

#[cfg(test)]
mod tests;
