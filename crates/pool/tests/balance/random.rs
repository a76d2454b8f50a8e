//! The random numbers of a run.

/// A pseudo-random number generator (xorshift64*). The same seed produces the same numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end
    }

    pub(crate) fn pick(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).expect("below a usize")
    }

    pub(crate) fn number(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(end.into())).expect("below a u32")
    }

    pub(crate) fn byte(&mut self, end: u8) -> u8 {
        u8::try_from(self.below(end.into())).expect("below a u8")
    }
}
