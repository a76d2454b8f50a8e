//! Planted bugs at the seam of the kernel: what a loop would do that forgets something.

use std::collections::BTreeSet;

/// One deliberate defect of a kernel, or of a loop that uses it wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// One report of bytes to read is swallowed, as by a loop that forgets to read on.
    LostEdge,
    /// One report of room to write is swallowed.
    LostRoom,
    /// What happened to a closed stream is told of the stream that has its place now, as by a loop
    /// that compares no generations.
    StaleToken,
    /// One wake-up is lost, as by a mailbox that asks for none although its reader sleeps.
    LostWake,
}

impl Plant {
    /// All of them.
    pub const ALL: &[Self] = &[Self::LostEdge, Self::LostRoom, Self::StaleToken, Self::LostWake];

    /// The name in `SIMULATE_PLANT`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::LostEdge => "lost-edge",
            Self::LostRoom => "lost-room",
            Self::StaleToken => "stale-token",
            Self::LostWake => "lost-wake",
        }
    }

    /// The defect of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|plant| plant.word() == word)
    }
}

/// A defect that strikes once, after it could have struck so many times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planted {
    pub(crate) plant: Option<Plant>,
    pub(crate) chances: usize,
    /// Places in the tables of loops that had a stream before, for the stale token.
    pub(crate) old_places: BTreeSet<(usize, u64)>,
}

impl Planted {
    /// Whether it strikes here.
    pub(crate) const fn strikes(&mut self, plant: Plant) -> bool {
        match self.plant {
            Some(planted) if planted as u8 == plant as u8 => {}
            _ => return false,
        }
        if self.chances > 0 {
            self.chances -= 1;
            return false;
        }
        self.plant = None;
        true
    }
}
