//! Numbers by chance from a fixed seed, for the targets as they run in the usual tests.

/// xorshift64*
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Less than `limit`, which is at least 1.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("31 bits fit")
            % limit
    }

    #[allow(dead_code, reason = "not every target wants it")]
    /// Any byte, and mostly one of those that are likely to matter.
    pub(crate) fn byte(&mut self, likely: &[u8]) -> u8 {
        let any = u8::try_from(self.below(256)).expect("below 256");
        if self.below(4) == 0 { any } else { likely[self.below(likely.len())] }
    }
}
