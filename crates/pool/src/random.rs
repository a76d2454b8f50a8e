//! A small pseudo-random number generator (splitmix64). The same seed produces the same numbers.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `end`, which is not 0. The bias is below `end` in 2^64.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half of 128 bits")
    }

    /// Returns a duration between three quarters of `delay` and `delay`.
    pub(crate) fn jitter(&mut self, delay: Duration) -> Duration {
        let quarter = delay / 4;
        let nanos = u64::try_from(quarter.as_nanos()).unwrap_or(u64::MAX);
        delay - Duration::from_nanos(self.next() % nanos.max(1))
    }
}

/// Spreads the bits of a number over all bits of the result (the final step of splitmix64).
pub(crate) const fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
