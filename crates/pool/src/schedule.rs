//! Which worker is next: workers with a free slot, in rings.
//!
//! Round robin has one ring. Least outstanding has one for each number of slots in use. Who is
//! given something goes to the end of its ring, so equals take turns. Everything is O(1): giving
//! work moves a worker one ring up, so the lowest ring that is not empty is found at once, and
//! only the end of a worker can make the search longer.

use crate::list::{Links, List};
use crate::settings::Schedule;

/// In no ring.
const NONE: u32 = u32::MAX;

/// Workers with a free slot.
#[derive(Debug)]
pub(crate) struct Free {
    schedule: Schedule,
    /// Slots of each worker.
    slots: u32,
    links: Links,
    rings: Vec<List>,
    /// The ring of each worker.
    ring_of: Vec<u32>,
    /// No ring below this one has anybody.
    lowest: usize,
    /// Workers in all rings.
    count: u32,
}

impl Free {
    pub(crate) fn new(schedule: Schedule, slots: u32) -> Self {
        Self {
            schedule,
            slots,
            links: Links::default(),
            rings: vec![List::EMPTY],
            ring_of: Vec::new(),
            lowest: 0,
            count: 0,
        }
    }

    /// Whether anybody has a free slot.
    pub(crate) const fn any(&self) -> bool {
        self.count > 0
    }

    /// How many have a free slot.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Who is next.
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        while self.rings[self.lowest].is_empty() {
            self.lowest += 1;
        }
        self.rings[self.lowest].first()
    }

    /// `worker` was given something, so that `in_use` of its slots are in use: others are next.
    pub(crate) fn given(&mut self, worker: u32, in_use: u32) {
        self.remove(worker);
        self.offer(worker, in_use);
    }

    /// `worker` takes work and has `in_use` slots in use, fewer than before. It keeps its turn
    /// if it has one.
    pub(crate) fn offer(&mut self, worker: u32, in_use: u32) {
        if in_use >= self.slots {
            return;
        }
        let ring = match self.schedule {
            Schedule::RoundRobin => 0,
            Schedule::LeastOutstanding => in_use,
        };
        if self.ring_of(worker) == ring {
            return;
        }
        self.remove(worker);
        self.links.cover(worker);
        if self.ring_of.len() <= worker as usize {
            self.ring_of.resize(worker as usize + 1, NONE);
        }
        if self.rings.len() <= ring as usize {
            self.rings.resize(ring as usize + 1, List::EMPTY);
        }
        self.rings[ring as usize].push_last(&mut self.links, worker);
        self.ring_of[worker as usize] = ring;
        self.lowest = self.lowest.min(ring as usize);
        self.count += 1;
    }

    /// `worker` takes no more work.
    pub(crate) fn remove(&mut self, worker: u32) {
        let ring = self.ring_of(worker);
        if ring != NONE {
            self.rings[ring as usize].remove(&mut self.links, worker);
            self.ring_of[worker as usize] = NONE;
            self.count -= 1;
        }
    }

    fn ring_of(&self, worker: u32) -> u32 {
        self.ring_of.get(worker as usize).copied().unwrap_or(NONE)
    }

    /// Sweeps the rings; `expected` says how many slots a worker that takes work has in use.
    pub(crate) fn check(&self, expected: impl Fn(u32) -> Option<u32>) {
        let mut count = 0;
        for (ring, list) in (0..).zip(&self.rings) {
            for worker in list.iter(&self.links) {
                let in_use = expected(worker).expect("only who takes work is in a ring");
                assert!(in_use < self.slots, "only who has a free slot is in a ring");
                assert!(self.schedule == Schedule::RoundRobin || ring == in_use, "in its ring");
                assert_eq!(self.ring_of(worker), ring, "it knows its ring");
                count += 1;
            }
            assert!(list.is_empty() || ring as usize >= self.lowest, "lowest is low enough");
        }
        assert_eq!(count, self.count, "the count is that of the rings");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out work until nobody is free: who was next each time.
    fn give_all(free: &mut Free, in_use: &mut [u32]) -> Vec<u32> {
        let mut turns = Vec::new();
        while let Some(worker) = free.next() {
            in_use[worker as usize] += 1;
            free.given(worker, in_use[worker as usize]);
            free.check(|worker| Some(in_use[worker as usize]));
            turns.push(worker);
        }
        turns
    }

    #[test]
    fn round_robin_gives_each_its_turn() {
        let mut free = Free::new(Schedule::RoundRobin, 2);
        let mut in_use = [0; 3];
        for worker in 0..3 {
            free.offer(worker, 0);
        }
        assert_eq!(give_all(&mut free, &mut in_use), [0, 1, 2, 0, 1, 2]);
        in_use[2] -= 1;
        free.offer(2, 1);
        in_use[0] = 0;
        free.offer(0, 1);
        free.offer(0, 0);
        assert_eq!(give_all(&mut free, &mut in_use), [2, 0, 0]);
    }

    #[test]
    fn least_outstanding_prefers_who_has_least() {
        let mut free = Free::new(Schedule::LeastOutstanding, 3);
        let mut in_use = [2, 0, 1];
        for worker in 0..3 {
            free.offer(worker, in_use[worker as usize]);
        }
        assert_eq!(give_all(&mut free, &mut in_use), [1, 2, 1, 0, 2, 1]);
        free.offer(1, 2);
        free.offer(1, 1);
        free.offer(0, 2);
        assert_eq!(free.next(), Some(1));
        free.remove(1);
        assert_eq!(free.next(), Some(0));
        free.remove(0);
        assert_eq!((free.next(), free.any()), (None, false));
    }
}
