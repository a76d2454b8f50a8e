//! The schedules, each with the data structure that makes it cheap.
//!
//! - *Round robin*: a ring. A worker that was given a request goes to its end.
//! - *Weighted round robin*: the next turn of each worker is a point in virtual time, one step of 1/weight after its
//!   last turn. The earliest is next. The first turn is half a step in, so that in every round each worker gets exactly
//!   its weight, evenly spread.
//! - *Least outstanding*: the fewest slots in use relative to the weight. Equal workers, such as all idle ones, take
//!   turns.
//! - *Two choices*: two workers are drawn by weight, and the one with less load relative to its weight is chosen; the
//!   first one if both are idle.
//! - *Random*: drawn by weight.
//! - *Hash*: the owner of the key on the hash ring, unless its load is above 5/4 of its share; then the next one
//!   (consistent hashing with bounded loads).
//! - *First*: the first place that has a free slot.

use crate::list::{Links, List};
use crate::random::Random;
use crate::settings::Schedule;

use super::choice::{Choice, Eligibility};
use super::heap::Heap;
use super::points::{Capacity, Points};
use super::shares::Shares;

/// One turn of a worker with a share of 1, in virtual time.
const STEP: u64 = 1 << 56;
/// The maximum number of turns by which a worker is set back after it was given more than its turns.
const TURNS_AHEAD: u64 = 4;
/// The number of points of the ring that are examined. After them, any free worker is equally good.
const WALK_MAX: usize = 64;

/// The workers with a free slot, in the order of a schedule.
#[derive(Debug)]
pub(crate) enum Order {
    Turns(Turns),
    Weighted(Weighted),
    Least(Heap),
    Choices(Drawn),
    Random(Drawn),
    Hash(Hash),
    First(Heap),
}

#[derive(Debug, Default)]
pub(crate) struct Turns {
    list: List,
    links: Links,
}

#[derive(Debug, Default)]
pub(crate) struct Weighted {
    heap: Heap,
    /// The virtual time: the time of the last turn.
    time: u64,
    /// The next turn of each worker, and the share that it was computed with; 0: none yet.
    turns: Vec<(u64, u32)>,
}

#[derive(Debug, Default)]
pub(crate) struct Drawn {
    shares: Shares,
    /// The load of each worker relative to its weight.
    loads: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Hash {
    points: Points,
    free: Shares,
    in_use: Vec<u32>,
    in_use_all: u64,
    weights: u64,
}

/// Returns the load of a worker relative to its weight, including one more request. An idle worker has no load, so that
/// idle workers are equal and those with a low weight have their turns too (HAProxy's `leastconn` does the same).
const fn load(eligibility: &Eligibility) -> u64 {
    if eligibility.in_use == 0 {
        return 0;
    }
    ((eligibility.in_use as u64 + 1) << 40) / eligibility.share as u64
}

impl Order {
    pub(crate) fn new(schedule: Schedule, capacity: Capacity) -> Self {
        match schedule {
            Schedule::RoundRobin => Self::Turns(Turns::default()),
            Schedule::WeightedRoundRobin => Self::Weighted(Weighted::default()),
            Schedule::LeastRequests => Self::Least(Heap::default()),
            Schedule::PowerOfTwo => Self::Choices(Drawn::default()),
            Schedule::Random => Self::Random(Drawn::default()),
            Schedule::Hash => Self::Hash(Hash {
                points: Points::new(capacity),
                free: Shares::default(),
                in_use: Vec::new(),
                in_use_all: 0,
                weights: 0,
            }),
            Schedule::First => Self::First(Heap::default()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Turns(turns) => turns.list.is_empty(),
            Self::Weighted(weighted) => weighted.heap.first().is_none(),
            Self::Least(heap) | Self::First(heap) => heap.first().is_none(),
            Self::Choices(drawn) | Self::Random(drawn) => drawn.shares.count() == 0,
            Self::Hash(hash) => hash.free.count() == 0,
        }
    }

    pub(crate) fn holds(&self, worker: u32) -> bool {
        match self {
            Self::Turns(turns) => turns.links.holds(worker),
            Self::Weighted(weighted) => weighted.heap.holds(worker),
            Self::Least(heap) | Self::First(heap) => heap.holds(worker),
            Self::Choices(drawn) | Self::Random(drawn) => drawn.shares.share(worker) > 0,
            Self::Hash(hash) => hash.free.share(worker) > 0,
        }
    }

    pub(crate) fn next(&mut self, random: &mut Random, key: Option<u64>) -> Option<(u32, Choice)> {
        let place = match self {
            Self::Turns(turns) => turns.list.first()?,
            Self::Weighted(weighted) => weighted.heap.first()?,
            Self::Least(heap) | Self::First(heap) => heap.first()?,
            Self::Choices(drawn) => drawn.better_of_two(random)?,
            Self::Random(drawn) => drawn.any(random)?,
            Self::Hash(hash) => return hash.next(random, key),
        };
        Some((place, Choice::Scheduled))
    }

    /// `worker` receives requests and has this eligibility. It was given nothing.
    pub(crate) fn offer(&mut self, worker: u32, eligibility: &Eligibility) {
        if let Self::Hash(hash) = self {
            return hash.stands(worker, eligibility);
        }
        if !eligibility.is_free() {
            return self.withdraw(worker);
        }
        match self {
            Self::Turns(turns) => {
                turns.links.cover(worker);
                if !turns.links.holds(worker) {
                    turns.list.push_last(&mut turns.links, worker);
                }
            }
            Self::Weighted(weighted) => weighted.offer(worker, eligibility.share),
            Self::Least(heap) => {
                let load = load(eligibility);
                if heap.rank(worker) != Some(load) {
                    heap.put(worker, load);
                }
            }
            Self::Choices(drawn) | Self::Random(drawn) => drawn.offer(worker, eligibility),
            Self::Hash(_) => unreachable!("taken care of above"),
            Self::First(heap) => {
                if !heap.holds(worker) {
                    heap.put(worker, u64::from(worker));
                }
            }
        }
    }

    /// `worker` was given a request.
    pub(crate) fn given(&mut self, worker: u32, eligibility: &Eligibility) {
        match self {
            Self::Turns(turns) if turns.links.holds(worker) => {
                turns.list.remove(&mut turns.links, worker);
            }
            Self::Weighted(weighted) => weighted.turn_taken(worker),
            _ => {}
        }
        self.offer(worker, eligibility);
    }

    /// `worker` has no free slot.
    pub(crate) fn withdraw(&mut self, worker: u32) {
        match self {
            Self::Turns(turns) if turns.links.holds(worker) => {
                turns.list.remove(&mut turns.links, worker);
            }
            Self::Turns(_) => {}
            Self::Weighted(weighted) => weighted.heap.remove(worker),
            Self::Least(heap) | Self::First(heap) => heap.remove(worker),
            Self::Choices(drawn) | Self::Random(drawn) => drawn.shares.set(worker, 0),
            Self::Hash(hash) => hash.free.set(worker, 0),
        }
    }

    /// `worker` receives no more requests.
    pub(crate) fn leave(&mut self, worker: u32) {
        self.withdraw(worker);
        match self {
            Self::Weighted(weighted) => {
                if let Some(turn) = weighted.turns.get_mut(worker as usize) {
                    turn.1 = 0;
                }
            }
            Self::Hash(hash) => hash.leave(worker),
            _ => {}
        }
    }

    /// Checks every invariant.
    pub(crate) fn check(&self) {
        match self {
            Self::Turns(turns) => {
                let length = turns.list.iter(&turns.links).count();
                assert_eq!(length, turns.list.length() as usize, "the ring is as long as it says");
            }
            Self::Weighted(weighted) => {
                weighted.heap.check();
                for worker in weighted.heap.iter() {
                    let (at, share) = weighted.turns[worker as usize];
                    assert!(share > 0, "who has a turn has a share");
                    let ahead = at.wrapping_sub(weighted.time).cast_signed();
                    assert!(ahead >= 0, "no turn is in the past");
                }
            }
            Self::Least(heap) | Self::First(heap) => heap.check(),
            Self::Choices(drawn) | Self::Random(drawn) => drawn.shares.check(),
            Self::Hash(hash) => hash.check(),
        }
    }
}

impl Weighted {
    fn offer(&mut self, worker: u32, share: u32) {
        if self.turns.len() <= worker as usize {
            self.turns.resize(worker as usize + 1, (0, 0));
        }
        let (at, before) = self.turns[worker as usize];
        if before == share && self.heap.holds(worker) {
            return;
        }
        let ahead = at.wrapping_sub(self.time);
        let ahead = if before == 0 {
            STEP / u64::from(share) / 2
        } else if ahead.cast_signed() < 0 {
            // Turns that were missed while the worker was full are not made up for.
            0
        } else if before == share {
            ahead
        } else {
            let scaled = u128::from(ahead) * u128::from(before) / u128::from(share);
            u64::try_from(scaled).unwrap_or(STEP).min(TURNS_AHEAD * (STEP / u64::from(share)))
        };
        let at = self.time.wrapping_add(ahead);
        self.turns[worker as usize] = (at, share);
        self.heap.put(worker, at);
    }

    fn turn_taken(&mut self, worker: u32) {
        let Some((at, share)) = self.turns.get_mut(worker as usize).filter(|turn| turn.1 > 0)
        else {
            return;
        };
        if self.heap.first() == Some(worker) {
            self.time = *at;
        }
        let step = STEP / u64::from(*share);
        let ahead = at.wrapping_sub(self.time).saturating_add(step).min(TURNS_AHEAD * step);
        *at = self.time.wrapping_add(ahead);
        // Its rank is outdated. `offer` adds it again.
        self.heap.remove(worker);
    }
}

impl Drawn {
    fn offer(&mut self, worker: u32, eligibility: &Eligibility) {
        self.shares.set(worker, eligibility.share);
        if self.loads.len() <= worker as usize {
            self.loads.resize(worker as usize + 1, 0);
        }
        self.loads[worker as usize] = load(eligibility);
    }

    fn any(&self, random: &mut Random) -> Option<u32> {
        let total = self.shares.total();
        (total > 0).then(|| self.shares.owner(random.below(total)))
    }

    fn better_of_two(&self, random: &mut Random) -> Option<u32> {
        let one = self.any(random)?;
        let own = u64::from(self.shares.share(one));
        let others = self.shares.total() - own;
        if others == 0 {
            return Some(one);
        }
        let mut point = random.below(others);
        if point >= self.shares.before(one) {
            point += own;
        }
        let other = self.shares.owner(point);
        let better = self.loads[other as usize] < self.loads[one as usize];
        Some(if better { other } else { one })
    }
}

impl Hash {
    fn stands(&mut self, worker: u32, eligibility: &Eligibility) {
        let at = worker as usize;
        if self.in_use.len() <= at {
            self.in_use.resize(at + 1, 0);
        }
        let before = std::mem::replace(&mut self.in_use[at], eligibility.in_use);
        self.in_use_all = self.in_use_all + u64::from(eligibility.in_use) - u64::from(before);
        let weight = self.points.weight(worker);
        if weight != eligibility.weight {
            self.weights = self.weights + u64::from(eligibility.weight) - u64::from(weight);
            self.points.set(worker, eligibility.identity, eligibility.weight);
        }
        self.free.set(worker, if eligibility.is_free() { eligibility.weight } else { 0 });
    }

    fn leave(&mut self, worker: u32) {
        if let Some(in_use) = self.in_use.get_mut(worker as usize) {
            self.in_use_all -= u64::from(std::mem::take(in_use));
        }
        self.weights -= u64::from(self.points.weight(worker));
        self.points.set(worker, 0, 0);
    }

    fn next(&mut self, random: &mut Random, key: Option<u64>) -> Option<(u32, Choice)> {
        let free = self.free.total();
        if free == 0 {
            return None;
        }
        let Some(key) = key else {
            return Some((self.free.owner(random.below(free)), Choice::Scheduled));
        };
        let (load, weights) = (5 * (self.in_use_all + 1), 4 * self.weights);
        for (nth, worker) in self.points.after(key).take(WALK_MAX).enumerate() {
            let share = self.free.share(worker);
            let bound = (load * u64::from(share)).div_ceil(weights);
            if u64::from(self.in_use[worker as usize]) < bound {
                let choice = if nth == 0 { Choice::Hashed } else { Choice::HashedOn };
                return Some((worker, choice));
            }
        }
        // Nearly all workers are full: any free one is used, the same one for the same key.
        Some((self.free.owner(crate::random::mix(key) % free), Choice::HashedOn))
    }

    fn check(&self) {
        self.free.check();
        let in_use: u64 = self.in_use.iter().map(|in_use| u64::from(*in_use)).sum();
        assert_eq!(in_use, self.in_use_all, "slots in use are counted");
    }
}
