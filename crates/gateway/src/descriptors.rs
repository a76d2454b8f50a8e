//! The limit of open files, and the reserve for workers.
//!
//! Clients may not use descriptors of the reserve. Otherwise the daemon could neither connect to a server nor start a
//! program for the clients that are already connected.
//!
//! ```text
//!   0 ──────────── clients and workers ──────── max − reserve ── clients get an error ── workers ── max
//!                                                                (the first half)
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

/// The reserve is one eighth of the limit, within these bounds.
const RESERVE_MIN: u32 = 8;
const RESERVE_MAX: u32 = 1024;

/// The supply of descriptors when a connection was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    Enough,
    /// The connection uses a descriptor of the reserve.
    Scarce,
    /// Half of the reserve is used.
    Last,
}

/// The limit of open files of the process (`RLIMIT_NOFILE`), for all shards.
#[derive(Debug)]
pub(crate) struct DescriptorLimit(AtomicU32);

impl DescriptorLimit {
    /// Creates a limit that is not known.
    pub(crate) const fn unknown() -> Self {
        Self(AtomicU32::new(u32::MAX))
    }

    pub(crate) fn set(&self, max: Option<u64>) {
        let max = max.and_then(|max| u32::try_from(max).ok()).unwrap_or(u32::MAX);
        self.0.store(max, Ordering::Relaxed);
    }

    /// Returns the limit, if it is known.
    pub(crate) fn max(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&max| max != u32::MAX)
    }

    /// Returns the supply when a new descriptor has this number. The system assigns the lowest free number.
    pub(crate) fn supply(&self, number: u32) -> Supply {
        let Some(max) = self.max() else { return Supply::Enough };
        let reserve = (max / 8).clamp(RESERVE_MIN, RESERVE_MAX).min(max / 2);
        let left = max.saturating_sub(number).saturating_sub(1);
        if left >= reserve {
            Supply::Enough
        } else if left >= reserve / 2 {
            Supply::Scarce
        } else {
            Supply::Last
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_an_eighth_of_the_limit_within_bounds() {
        let limit = DescriptorLimit::unknown();
        assert_eq!((limit.max(), limit.supply(u32::MAX)), (None, Supply::Enough));
        for (max, scarce, last) in
            [(1024, 896, 960), (64, 56, 60), (10, 5, 8), (1 << 20, 1_047_552, 1_048_064)]
        {
            limit.set(Some(max));
            let seen = [scarce - 1, scarce, last - 1, last].map(|number| limit.supply(number));
            assert_eq!(
                seen,
                [Supply::Enough, Supply::Scarce, Supply::Scarce, Supply::Last],
                "{max}"
            );
        }
        limit.set(None);
        assert_eq!(limit.max(), None);
    }
}
