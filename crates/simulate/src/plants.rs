//! Mutants at the interface of the kernel: the behaviour of a defective kernel or loop.

use std::collections::BTreeSet;

/// One deliberate defect of a kernel, or of a loop that uses the kernel incorrectly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// One report of readable bytes is lost, as if a loop did not continue to read.
    LostEdge,
    /// One report of writable space is lost.
    LostRoom,
    /// An event of a closed stream is reported for the stream that now has its slot, as if a loop did not compare
    /// generations.
    StaleToken,
    /// One wake-up is lost, as if a mailbox did not wake its sleeping reader.
    LostWake,
}

impl Mutant {
    /// All mutants.
    pub const ALL: &[Self] = &[Self::LostEdge, Self::LostRoom, Self::StaleToken, Self::LostWake];

    /// Returns the name in `SIMULATE_PLANT`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LostEdge => "lost-edge",
            Self::LostRoom => "lost-room",
            Self::StaleToken => "stale-token",
            Self::LostWake => "lost-wake",
        }
    }

    /// Returns the mutant with this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.as_str() == word)
    }
}

/// A mutant that acts once, after this number of opportunities.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planted {
    pub(crate) mutant: Option<Mutant>,
    pub(crate) chances: usize,
    /// Slots of loops that had a stream before, for [`Mutant::StaleToken`].
    pub(crate) old_places: BTreeSet<(usize, u64)>,
}

impl Planted {
    /// Whether the mutant acts here.
    pub(crate) const fn strikes(&mut self, mutant: Mutant) -> bool {
        match self.mutant {
            Some(planted) if planted as u8 == mutant as u8 => {}
            _ => return false,
        }
        if self.chances > 0 {
            self.chances -= 1;
            return false;
        }
        self.mutant = None;
        true
    }
}
