//! A number that other threads may read while it changes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number with one writer and any number of readers.
#[derive(Debug, Default)]
pub struct Published(AtomicU64);

impl Published {
    /// Replaces the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn add(&self, other: &Self) {
        self.set(self.load().saturating_add(other.load()));
    }

    pub(super) fn at_least(&self, other: &Self) {
        self.set(self.load().max(other.load()));
    }

    /// Returns the number that was stored last.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sums lists of numbers as [`Published::add`] sums one.
pub(super) trait AddEach {
    fn add(&self, other: &Self);
}

impl AddEach for [Published] {
    fn add(&self, other: &Self) {
        self.iter().zip(other).for_each(|(to, from)| to.add(from));
    }
}
