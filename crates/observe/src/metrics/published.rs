//! A number that others may read while it changes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number with one writer.
#[derive(Debug, Default)]
pub struct Published(AtomicU64);

impl Published {
    /// Stores the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn add(&self, other: &Self) {
        self.set(self.load().saturating_add(other.load()));
    }

    pub(super) fn at_least(&self, other: &Self) {
        self.set(self.load().max(other.load()));
    }

    /// The number as it was last stored.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
