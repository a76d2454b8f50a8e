//! The ring of consistent hashing: each worker owns points on a circle, and a key belongs to the worker of the first
//! point behind it.
//!
//! The points of a worker depend only on its identity. They are the same after the worker was away, and if a worker
//! leaves, only its own keys move. With 512 points, the worker's share of the keys differs from the expected share by
//! up to about 15 %. With very many workers, each has fewer points.

use crate::random::mix;

/// The number of points of a worker of average weight, with few workers and with many.
const POINTS_MAX: u64 = 512;
const POINTS_MIN: u64 = 128;
/// The number of points of all workers above which each worker has fewer.
const POINTS_ALL: u64 = 1 << 17;
/// The maximum number of points of one worker, regardless of its weight.
const POINTS_OF_ONE: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    at: u32,
    place: u32,
}

/// Determines the number of points of a worker. It changes only with the declared workers, because other points mean
/// other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Points for all weights together.
    points: u64,
    /// The sum of all weights.
    weights: u64,
}

impl Capacity {
    /// The capacity for this number of workers with this sum of weights.
    pub(crate) fn new(workers: u64, weights: u64) -> Self {
        let workers = workers.max(1);
        let each = (POINTS_ALL / workers).clamp(POINTS_MIN, POINTS_MAX);
        Self { points: each * workers, weights: weights.max(1) }
    }

    fn points_of(self, weight: u32) -> u64 {
        (self.points * u64::from(weight) / self.weights).clamp(1, POINTS_OF_ONE)
    }
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Points {
    capacity: Capacity,
    /// Sorted, unless `stale`.
    points: Vec<Point>,
    stale: bool,
    /// The weight of each place; 0: the place is not on the ring.
    weights: Vec<u32>,
}

impl Points {
    pub(crate) const fn new(capacity: Capacity) -> Self {
        Self { capacity, points: Vec::new(), stale: false, weights: Vec::new() }
    }

    pub(crate) fn weight(&self, place: u32) -> u32 {
        self.weights.get(place as usize).copied().unwrap_or(0)
    }

    /// Adds a worker with this weight, or removes it if the weight is 0. O(points) if the weight changes.
    pub(crate) fn set(&mut self, place: u32, identity: u64, weight: u32) {
        if self.weight(place) == weight {
            return;
        }
        if self.weights.len() <= place as usize {
            self.weights.resize(place as usize + 1, 0);
        }
        if self.weights[place as usize] > 0 {
            self.points.retain(|point| point.place != place);
        }
        self.weights[place as usize] = weight;
        if weight > 0 {
            let own = (0..self.capacity.points_of(weight))
                .map(|number| Point { at: upper(mix(identity ^ mix(number))), place });
            self.points.extend(own);
            self.stale = true;
        }
    }

    /// Returns the workers in their order after `key`. A worker may occur several times.
    pub(crate) fn after(&mut self, key: u64) -> impl Iterator<Item = u32> + '_ {
        if self.stale {
            // A stable sort makes use of the part that is already sorted.
            self.points.sort();
            self.stale = false;
        }
        let at = upper(mix(key));
        let first = self.points.partition_point(|point| point.at < at);
        let (before, behind) = self.points.split_at(first);
        behind.iter().chain(before).map(|point| point.place)
    }
}

fn upper(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("half of 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: u64 = 40_000;

    fn owners(points: &mut Points) -> Vec<u32> {
        (0..KEYS).map(|key| points.after(key).next().unwrap()).collect()
    }

    fn identity(place: u32) -> u64 {
        mix(u64::from(place) + 99)
    }

    #[test]
    fn who_leaves_moves_its_own_keys_only_and_no_more_than_its_share() {
        for workers in [2_u32, 5, 20, 100] {
            let mut points = Points::new(Capacity::new(workers.into(), workers.into()));
            (0..workers).for_each(|place| points.set(place, identity(place), 1));
            let before = owners(&mut points);
            for gone in 0..workers {
                points.set(gone, identity(gone), 0);
                let after = owners(&mut points);
                let mut moved = 0_u32;
                for (old, new) in before.iter().zip(&after) {
                    assert!(old == new || *old == gone, "a key moved that need not");
                    moved += u32::from(old != new);
                }
                let share = f64::from(moved) / 40_000.0;
                // Four sigma of the drawn keys are added to the required bound.
                let due = 1.2 / f64::from(workers);
                let sigma = (due / 40_000.0).sqrt();
                assert!(share <= due + 4.0 * sigma, "{share} of the keys, {workers} workers");
                points.set(gone, identity(gone), 1);
            }
            assert_eq!(owners(&mut points), before, "who comes back gets its keys back");
        }
    }

    #[test]
    fn weights_are_kept_to() {
        let mut points = Points::new(Capacity::new(3, 6));
        for place in 0..3 {
            points.set(place, identity(place), place + 1);
        }
        let owners = owners(&mut points);
        for place in 0..3 {
            let count = owners.iter().filter(|owner| **owner == place).count();
            let due = 40_000.0 * f64::from(place + 1) / 6.0;
            let off = (f64::from(u32::try_from(count).unwrap()) / due - 1.0).abs();
            assert!(off < 0.15, "{place}: off by {off}");
        }
    }
}
