//! The connection of each shard that holds most memory, while the limit on memory is exceeded.
//!
//! A shard closes a connection only if no other shard has one that holds more than twice as much. Otherwise a shard
//! with only small clients would close them because of one large client of another shard.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The values of all shards, in their order.
#[derive(Debug)]
pub(crate) struct Holders {
    epoch: OnceLock<Instant>,
    /// The time at which the limit was exceeded, in microseconds.
    exceeded: AtomicU64,
    shards: Box<[Largest]>,
}

#[derive(Debug, Default)]
struct Largest {
    bytes: AtomicUsize,
    /// The time at which this was stored, in microseconds; 0: never.
    at: AtomicU64,
}

/// A shard that has not published anything for this time is not waited for.
const FRESH: Duration = Duration::from_secs(1);

impl Holders {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            epoch: OnceLock::new(),
            exceeded: AtomicU64::new(0),
            shards: (0..shards).map(|_| Largest::default()).collect(),
        }
    }

    /// Returns the time in microseconds, starting from 1.
    fn time(&self, now: Instant) -> u64 {
        let epoch = *self.epoch.get_or_init(|| now);
        let since = now.saturating_duration_since(epoch).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Starts a period in which the limit is exceeded. Values published before are discarded.
    pub(crate) fn begin(&self, now: Instant) {
        self.exceeded.store(self.time(now), Ordering::SeqCst);
        self.shards.iter().for_each(|shard| shard.at.store(0, Ordering::SeqCst));
    }

    /// Publishes how much the largest connection of a shard holds. Returns true if the other shards should check again,
    /// because the value was unknown or has become less than half.
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
