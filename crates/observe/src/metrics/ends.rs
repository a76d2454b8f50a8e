//! The counters of the finished requests of a pool, by cause and phase.

use exchange::{Cause, End, Phase};

use super::published::Published;

pub(super) const ENDS: usize = Cause::ALL.len() * Phase::ALL.len();

pub(super) fn end_place(end: End) -> usize {
    end.cause as usize * Phase::ALL.len() + end.phase as usize
}

/// Finished requests by cause and phase. There are hundreds of combinations, and a turn changes only one or two.
/// Therefore one bit for each combination marks the changed ones.
#[derive(Debug)]
pub(super) struct Ends {
    counts: Vec<u64>,
    changed: [u64; ENDS.div_ceil(64)],
}

impl Default for Ends {
    fn default() -> Self {
        Self { counts: vec![0; ENDS], changed: [0; ENDS.div_ceil(64)] }
    }
}

impl Ends {
    pub(super) fn count(&mut self, place: usize, count: u64) {
        self.counts[place] += count;
        self.changed[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn publish(&mut self, to: &[Published]) {
        for (word, bits) in self.changed.iter_mut().enumerate() {
            while *bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                to[place].set(self.counts[place]);
                *bits &= *bits - 1;
            }
        }
    }
}
