//! The random numbers of a world: they follow from its seed.

use exchange::Random;

#[derive(Debug)]
pub(crate) struct Chance(Random);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number from `first` to `last`, both inclusive.
    pub(crate) const fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.next() % (last - first + 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True in `times` of 1,000 cases.
    pub(crate) const fn in_1000(&mut self, times: u64) -> bool {
        self.next() % 1000 < times
    }
}
