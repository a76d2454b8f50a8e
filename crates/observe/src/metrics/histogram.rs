//! Histograms of durations.

use std::time::Duration;

use super::published::{AddEach, Published};

/// Upper bounds of the histogram buckets, in microseconds. The last bucket has no bound.
pub(super) const BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// A histogram of durations, from 250 µs to 30 s.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: [u64; BOUNDS_US.len() + 1],
    /// Buckets that changed since they were published, one bit each.
    changed: u16,
    sum_us: u64,
}

const _: () = assert!(BOUNDS_US.len() < 16, "a bit for each bucket");

impl Histogram {
    /// Adds one duration.
    pub fn record(&mut self, took: Duration) {
        self.record_all(took, 1);
    }

    /// Adds `count` equal durations.
    pub(super) fn record_all(&mut self, took: Duration, count: u64) {
        let us = u64::from(took.subsec_micros())
            .saturating_add(took.as_secs().saturating_mul(1_000_000));
        let bucket = BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(BOUNDS_US.len());
        self.buckets[bucket] += count;
        self.changed |= 1 << bucket;
        self.sum_us = self.sum_us.saturating_add(us.saturating_mul(count));
    }
}

#[derive(Debug, Default)]
pub(super) struct PublishedHistogram {
    pub(super) buckets: [Published; BOUNDS_US.len() + 1],
    pub(super) sum_us: Published,
}

impl PublishedHistogram {
    pub(super) fn set(&self, histogram: &mut Histogram) {
        let mut changed = std::mem::take(&mut histogram.changed);
        while changed != 0 {
            let bucket = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.buckets[bucket].set(histogram.buckets[bucket]);
        }
        self.sum_us.set(histogram.sum_us);
    }

    pub(super) fn add(&self, other: &Self) {
        self.buckets.add(&other.buckets);
        self.sum_us.add(&other.sum_us);
    }
}
