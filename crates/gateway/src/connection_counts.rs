//! How many links all shards together have to each server of a pool.
//!
//! A server that takes so many requests at once may have room for no more connections: a link that
//! rests on one shard would stand in the way of another shard's. So whoever makes one more than
//! there are slots has the others close one that they do not use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Links of all shards to one server.
#[derive(Debug, Default)]
struct Count {
    links: AtomicU32,
    /// The slots of the server.
    slots: AtomicU32,
    /// Times that a shard found that it sent bytes that no request asked for.
    reports: AtomicU32,
}

impl Count {
    fn slots(&self) -> u32 {
        self.slots.load(Ordering::Relaxed)
    }
}

/// The same of all servers of a pool, by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionCounts(Vec<Arc<Count>>);

impl ConnectionCounts {
    /// The same with so many slots by place, and further places.
    pub(crate) fn with(&self, slots: &[u32]) -> Self {
        let mut counts = self.0.clone();
        counts.resize_with(slots.len().max(counts.len()), Arc::default);
        // A shard that sees it late only closes a link that it need not have closed.
        let set =
            |(count, &slots): (&Arc<Count>, &u32)| count.slots.store(slots, Ordering::Relaxed);
        counts.iter().zip(slots).for_each(set);
        Self(counts)
    }

    /// One link more. True when another must go for it.
    pub(super) fn open(&self, place: usize) -> bool {
        let more =
            |count: &Arc<Count>| count.links.fetch_add(1, Ordering::Relaxed) >= count.slots();
        self.0.get(place).is_some_and(more)
    }

    /// A server sent bytes that no request asked for: the other shards are to know. The number of such
    /// reports.
    pub(super) fn report(&self, place: usize) -> u32 {
        let add = |count: &Arc<Count>| count.reports.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.get(place).map_or(0, add)
    }

    /// The number of these reports by now.
    pub(super) fn reports(&self, place: usize) -> u32 {
        self.0.get(place).map_or(0, |count| count.reports.load(Ordering::Relaxed))
    }

    /// One link fewer.
    pub(super) fn close(&self, place: usize) {
        if let Some(count) = self.0.get(place) {
            count.links.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there are more than slots.
    pub(super) fn is_short(&self, place: usize) -> bool {
        let short = |count: &Arc<Count>| count.links.load(Ordering::Relaxed) > count.slots();
        self.0.get(place).is_some_and(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_beyond_the_slots_asks_for_another_to_go() {
        let room = ConnectionCounts::default().with(&[2, 1]);
        assert_eq!([room.open(0), room.open(0), room.open(0)], [false, false, true]);
        assert!(room.is_short(0) && !room.is_short(1));
        room.close(0);
        assert!(!room.is_short(0));
        assert!(!room.open(1) && room.open(1), "each server has its own");
    }
}
