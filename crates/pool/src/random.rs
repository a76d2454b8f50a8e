//! Ranges and durations from pseudo-random numbers.

use std::time::Duration;

pub(crate) use exchange::mix;

#[derive(Clone, Debug)]
pub(crate) struct Random(exchange::Random);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(exchange::Random::new(seed))
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `end`, which is not 0. The bias is below `end` in 2^64.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.draw()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half of 128 bits")
    }

    /// Returns a duration between three quarters of `delay` and `delay`.
    pub(crate) fn jitter(&mut self, delay: Duration) -> Duration {
        let quarter = delay / 4;
        let nanos = u64::try_from(quarter.as_nanos()).unwrap_or(u64::MAX);
        delay - Duration::from_nanos(self.draw() % nanos.max(1))
    }
}
