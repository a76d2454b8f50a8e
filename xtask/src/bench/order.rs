//! The order of the subjects within a round, random in each round and derived from one seed. Pure, except for the seed.
//!
//! With a fixed order, each subject would always run after the same other one, with the caches and at the clock speed
//! that the other one leaves behind.

use std::time::{SystemTime, UNIX_EPOCH};

/// A sequence of random orders; the same seed gives the same sequence.
#[derive(Clone, Debug)]
pub(super) struct Order {
    state: u64,
}

impl Order {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the numbers below `count` in random order.
    pub(super) fn round(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let bound = last as u64 + 1;
            let other = usize::try_from(self.next() % bound).expect("it is below a usize");
            order.swap(last, other);
        }
        order
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Returns a seed that differs from run to run and is short enough to be typed again.
pub(super) fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_every_subject_once() {
        let mut order = Order::new(7);
        for _ in 0..100 {
            let mut round = order.round(5);
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        assert!(Order::new(7).round(0).is_empty());
    }

    #[test]
    fn every_subject_runs_first_and_after_every_other() {
        let mut order = Order::new(7);
        let rounds: Vec<_> = (0..200).map(|_| order.round(4)).collect();
        for one in 0..4 {
            assert!(rounds.iter().any(|round| round[0] == one));
            for other in (0..4).filter(|other| *other != one) {
                assert!(rounds.iter().any(|round| round.windows(2).any(|two| two == [one, other])));
            }
        }
    }

    #[test]
    fn a_seed_gives_its_orders_again() {
        let rounds = |seed| {
            let mut order = Order::new(seed);
            (0..20).map(|_| order.round(6)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
    }
}
