//! The choice of the next worker.
//!
//! For each schedule, this is the set of workers with a free slot, in the order of the schedule. Backup workers form a
//! second set, which is used when the first set contains no worker, not even a busy one. Every operation is O(1) or
//! O(log n) in the number of workers.

mod choice;
mod heap;
mod order;
mod points;
mod shares;

#[cfg(test)]
mod tests;

use crate::failed::Failed;
use crate::random::Random;
use crate::settings::Schedule;

pub use choice::Choice;
pub(crate) use choice::Eligibility;
pub(crate) use order::Order;
pub(crate) use points::Capacity;

/// The share of a worker of weight 1 whose slow start has ended.
pub(crate) const SHARE_OF_ONE: u32 = 256;

/// The two sets of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Main = 0,
    Backup = 1,
}

/// The workers that receive requests, and the choice of the next one.
#[derive(Debug)]
pub(crate) struct FreeWorkers {
    /// The schedule and capacity that the orders were built for.
    made_for: (Schedule, Capacity),
    tiers: [Order; 2],
    /// The number of workers that receive requests, with or without a free slot.
    present: [u32; 2],
    tier_of: Vec<Option<Tier>>,
}

impl FreeWorkers {
    pub(crate) fn new(schedule: Schedule, capacity: Capacity) -> Self {
        Self {
            made_for: (schedule, capacity),
            tiers: [Order::new(schedule, capacity), Order::new(schedule, capacity)],
            present: [0; 2],
            tier_of: Vec::new(),
        }
    }

    /// Sets the schedule. If it is unchanged, every worker keeps its turn; otherwise all workers must be offered again.
    pub(crate) fn handle_settings(&mut self, schedule: Schedule, capacity: Capacity) {
        // Only the points of the hash ring depend on the declared workers.
        let same = schedule != Schedule::Hash || self.made_for.1 == capacity;
        if self.made_for.0 != schedule || !same {
            *self = Self::new(schedule, capacity);
        }
    }

    /// The current schedule.
    pub(crate) const fn schedule(&self) -> Schedule {
        self.made_for.0
    }

    /// The set in use: the backup workers only if no other worker receives requests.
    const fn tier(&self) -> usize {
        if self.present[0] == 0 { 1 } else { 0 }
    }

    /// Whether the backup workers serve.
    pub(crate) const fn is_on_backup(&self) -> bool {
        self.present[0] == 0 && self.present[1] > 0
    }

    /// The number of workers in the set in use.
    pub(crate) const fn candidates(&self) -> u32 {
        self.present[self.tier()]
    }

    /// Whether any other worker receives requests, in either set.
    pub(crate) fn others(&self, worker: u32) -> bool {
        self.present[0] + self.present[1] > u32::from(self.tier_of(worker).is_some())
    }

    /// Whether any worker of the set in use has a free slot.
    pub(crate) fn any(&self) -> bool {
        !self.tiers[self.tier()].is_empty()
    }

    /// Returns the next worker for a request with this key.
    pub(crate) fn next(&mut self, random: &mut Random, key: Option<u64>) -> Option<(u32, Choice)> {
        let tier = self.tier();
        self.tiers[tier].next(random, key)
    }

    /// Returns the next worker that is not one of these. They have a free slot and keep it.
    pub(crate) fn next_but(
        &mut self,
        random: &mut Random,
        key: Option<u64>,
        hidden: &[(u32, Eligibility)],
    ) -> Option<(u32, Choice)> {
        let order = &mut self.tiers[self.tier()];
        for (worker, _) in hidden {
            order.withdraw(*worker);
        }
        let next = if order.is_empty() { None } else { order.next(random, key) };
        for (worker, eligibility) in hidden {
            order.offer(*worker, eligibility);
        }
        next
    }

    /// Whether any worker that receives requests, with or without a free slot, has not failed a request.
    pub(crate) fn has_others(&self, failed: &Failed) -> bool {
        let tier = self.tier();
        let is_in = |place: &u32| self.tier_of(*place).is_some_and(|of| of as usize == tier);
        self.candidates() as usize > failed.each().filter(is_in).count()
    }

    /// Whether `worker` may be chosen and has a free slot.
    pub(crate) fn holds(&self, worker: u32) -> bool {
        let tier = self.tier();
        self.tier_of(worker).is_some_and(|of| of as usize == tier) && self.tiers[tier].holds(worker)
    }

    /// `worker` was given a request, so its turn is over.
    pub(crate) fn given(&mut self, worker: u32, eligibility: &Eligibility) {
        if let Some(tier) = self.tier_of(worker) {
            self.tiers[tier as usize].given(worker, eligibility);
        }
    }

    /// `worker` receives requests. If it already has a turn, it keeps it.
    pub(crate) fn offer(&mut self, worker: u32, eligibility: &Eligibility) {
        let tier = if eligibility.backup { Tier::Backup } else { Tier::Main };
        if self.tier_of(worker) != Some(tier) {
            self.remove(worker);
            if self.tier_of.len() <= worker as usize {
                self.tier_of.resize(worker as usize + 1, None);
            }
            self.tier_of[worker as usize] = Some(tier);
            self.present[tier as usize] += 1;
        }
        self.tiers[tier as usize].offer(worker, eligibility);
    }

    /// `worker` receives no more requests.
    pub(crate) fn remove(&mut self, worker: u32) {
        if let Some(tier) = self.tier_of(worker) {
            self.tiers[tier as usize].leave(worker);
            self.tier_of[worker as usize] = None;
            self.present[tier as usize] -= 1;
        }
    }

    fn tier_of(&self, worker: u32) -> Option<Tier> {
        self.tier_of.get(worker as usize).copied().flatten()
    }

    /// Checks the sets. `expected` returns the eligibility of a worker that receives requests.
    pub(crate) fn check(&self, expected: impl Fn(u32) -> Option<Eligibility>) {
        let mut present = [0, 0];
        for (worker, tier) in (0..).zip(&self.tier_of) {
            let eligibility = expected(worker);
            let due = eligibility.map(|eligibility| match eligibility.backup {
                true => Tier::Backup,
                false => Tier::Main,
            });
            assert_eq!(*tier, due, "who takes work is offered, in its set");
            let (Some(tier), Some(eligibility)) = (tier, eligibility) else { continue };
            present[*tier as usize] += 1;
            let offered = self.tiers[*tier as usize].holds(worker);
            assert_eq!(
                offered,
                eligibility.is_free(),
                "a free slot is offered, a full worker is not"
            );
        }
        assert_eq!(present, self.present, "who takes work is counted");
        self.tiers.iter().for_each(Order::check);
    }
}
