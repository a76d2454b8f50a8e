//! Places by rank, the lowest first. Changes are O(log n), reading the first is O(1).
//!
//! Ranks are compared as points on a circle of 2^64, so an increasing rank may wrap. No two ranks in a heap are further
//! apart than half of the circle. Equal ranks are in the order in which they were added.

/// Marks a place that is in no heap.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: u64,
    /// Orders equal ranks.
    since: u64,
    place: u32,
}

impl Entry {
    const fn before(&self, other: &Self) -> bool {
        let gap = self.rank.wrapping_sub(other.rank).cast_signed();
        gap < 0 || (gap == 0 && self.since < other.since)
    }
}

/// Places by rank.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    entries: Vec<Entry>,
    /// The position of each place.
    index: Vec<u32>,
    clock: u64,
}

impl Heap {
    pub(crate) fn first(&self) -> Option<u32> {
        self.entries.first().map(|entry| entry.place)
    }

    #[cfg(test)]
    pub(crate) const fn length(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn holds(&self, place: u32) -> bool {
        self.index.get(place as usize).is_some_and(|at| *at != NONE)
    }

    /// Adds `place` with this rank, behind equal ones, or moves it there.
    pub(crate) fn put(&mut self, place: u32, rank: u64) {
        if self.index.len() <= place as usize {
            self.index.resize(place as usize + 1, NONE);
        }
        let entry = Entry { rank, since: self.clock, place };
        self.clock += 1;
        let at = self.index[place as usize];
        if at == NONE {
            self.entries.push(entry);
            self.rise(self.entries.len() - 1);
        } else {
            self.entries[at as usize] = entry;
            self.settle(at as usize);
        }
    }

    /// Returns the rank of `place`, if it is in the heap.
    pub(crate) fn rank(&self, place: u32) -> Option<u64> {
        self.holds(place).then(|| self.entries[self.index[place as usize] as usize].rank)
    }

    /// Removes `place`, if it is in the heap.
    pub(crate) fn remove(&mut self, place: u32) {
        if !self.holds(place) {
            return;
        }
        let at = self.index[place as usize] as usize;
        self.index[place as usize] = NONE;
        self.entries.swap_remove(at);
        if at < self.entries.len() {
            self.settle(at);
        }
    }

    /// Moves the entry at `at` to its correct position.
    fn settle(&mut self, at: usize) {
        let place = self.entries[at].place;
        self.rise(at);
        let at = self.index[place as usize] as usize;
        self.sink(at);
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if !entry.before(&self.entries[parent]) {
                break;
            }
            self.set(at, self.entries[parent]);
            at = parent;
        }
        self.set(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.entries[at];
        loop {
            let left = 2 * at + 1;
            let Some(mut child) = self.entries.get(left).map(|_| left) else { break };
            if self.entries.get(left + 1).is_some_and(|right| right.before(&self.entries[left])) {
                child = left + 1;
            }
            if !self.entries[child].before(&entry) {
                break;
            }
            self.set(at, self.entries[child]);
            at = child;
        }
        self.set(at, entry);
    }

    fn set(&mut self, at: usize, entry: Entry) {
        self.entries[at] = entry;
        self.index[entry.place as usize] = u32::try_from(at).expect("places are 32 bits");
    }

    /// Returns the places in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.place)
    }

    /// Checks every invariant.
    pub(crate) fn check(&self) {
        for (at, entry) in self.entries.iter().enumerate() {
            assert_eq!(self.index[entry.place as usize] as usize, at, "a place knows where it is");
            let parent = at.checked_sub(1).map(|below| &self.entries[below / 2]);
            assert!(parent.is_none_or(|parent| !entry.before(parent)), "the lowest is on top");
        }
        let held = self.index.iter().filter(|at| **at != NONE).count();
        assert_eq!(held, self.entries.len(), "every place that is held has an entry");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn it_gives_what_a_sorted_list_would_give() {
        let mut random = Random::new(7);
        let mut heap = Heap::default();
        let mut naive: Vec<(u64, u64, u32)> = Vec::new();
        for step in 0..20_000_u64 {
            let place = u32::try_from(random.below(50)).unwrap();
            naive.retain(|entry| entry.2 != place);
            if random.below(3) == 0 {
                heap.remove(place);
            } else {
                let rank = random.below(10);
                heap.put(place, rank);
                naive.push((rank, step, place));
            }
            heap.check();
            assert_eq!(heap.first(), naive.iter().min().map(|entry| entry.2));
            assert_eq!(heap.length(), naive.len());
        }
    }

    #[test]
    fn ranks_may_wrap() {
        let mut heap = Heap::default();
        heap.put(0, 3);
        heap.put(1, u64::MAX - 3);
        assert_eq!(heap.first(), Some(1));
    }
}
