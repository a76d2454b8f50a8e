//! The connection of each shard for which most memory is held, while the limit on memory is exceeded.
//!
//! A shard closes a connection only if no other shard has one that holds more than twice as much. Otherwise a shard
//! with small clients only would close those for what a client of another shard holds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// All shards, in their order.
#[derive(Debug)]
pub(crate) struct Holders {
    epoch: OnceLock<Instant>,
    /// When the limit was exceeded, in microseconds.
    exceeded: AtomicU64,
    shards: Box<[Largest]>,
}

#[derive(Debug, Default)]
struct Largest {
    bytes: AtomicUsize,
    /// When this was stored, in microseconds; 0: never.
    at: AtomicU64,
}

/// A shard that has not published anything for so long is not waited for.
const FRESH: Duration = Duration::from_secs(1);

impl Holders {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            epoch: OnceLock::new(),
            exceeded: AtomicU64::new(0),
            shards: (0..shards).map(|_| Largest::default()).collect(),
        }
    }

    /// Microseconds, from 1 on.
    fn time(&self, now: Instant) -> u64 {
        let epoch = *self.epoch.get_or_init(|| now);
        let since = now.saturating_duration_since(epoch).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// The limit is exceeded from now on. What was published before is not known any more.
    pub(crate) fn begin(&self, now: Instant) {
        self.exceeded.store(self.time(now), Ordering::SeqCst);
        self.shards.iter().for_each(|shard| shard.at.store(0, Ordering::SeqCst));
    }

    /// Publishes how much is held for the largest connection of a shard. True when the other shards should look again:
    /// it was not known, or is much less than before.
    pub(crate) fn publish(&self, shard: u32, bytes: usize, now: Instant) -> bool {
        let Some(place) = self.shards.get(shard as usize) else { return false };
        let before = place.bytes.swap(bytes, Ordering::SeqCst);
        let at = place.at.swap(self.time(now), Ordering::SeqCst);
        self.shards.len() > 1 && (at == 0 || bytes < before / 2)
    }

    /// Whether no other shard has a connection that holds more than twice as much as this.
    pub(crate) fn is_largest(&self, shard: u32, bytes: usize, now: Instant) -> bool {
        let now = self.time(now);
        let is_fresh = |at: u64| u128::from(now.saturating_sub(at)) < FRESH.as_micros();
        let may_wait = is_fresh(self.exceeded.load(Ordering::SeqCst));
        let mut others = self.shards.iter().zip(0_u32..).filter(|(_, other)| *other != shard);
        others.all(|(other, _)| match other.at.load(Ordering::SeqCst) {
            0 => !may_wait,
            at => !is_fresh(at) || bytes >= other.bytes.load(Ordering::SeqCst) / 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shards_with_the_largest_connections_close_any() {
        let now = Instant::now();
        let holders = Holders::new(3);
        holders.begin(now);
        assert!(holders.publish(0, 100, now) && !holders.publish(0, 90, now));
        assert!(!holders.is_largest(0, 100, now), "the others are not known");
        assert!(holders.is_largest(0, 100, now + FRESH), "they are not waited for any longer");
        assert!(holders.publish(1, 250, now) && holders.publish(2, 150, now));
        let largest = |at| {
            [(0, 100), (1, 250), (2, 150)].map(|(it, bytes)| holders.is_largest(it, bytes, at))
        };
        assert_eq!(largest(now), [false, true, true]);
        assert_eq!(largest(now + FRESH), [true; 3]);
        assert!(holders.publish(1, 100, now), "it is less than half");
        assert_eq!(largest(now), [true; 3]);
        holders.begin(now);
        assert_eq!(largest(now), [false; 3]);
        assert!(Holders::new(1).is_largest(0, 0, now), "it is alone");
    }
}
