//! The number of connections of all shards to each server of a pool.
//!
//! A server with a limit of concurrent requests may accept no more connections than that, so an idle connection of one
//! shard could block another shard. When a shard opens more connections than the server has slots, the other shards
//! close an idle one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use exchange::{ByWorker, WorkerId, WorkerIndex};

/// Connections of all shards to one server.
#[derive(Debug, Default)]
struct Count {
    links: AtomicU32,
    /// The slots of the server.
    slots: AtomicU32,
    /// How often a shard received bytes of the server without a request.
    reports: AtomicU32,
}

impl Count {
    fn slots(&self) -> u32 {
        self.slots.load(Ordering::Relaxed)
    }
}

/// The connections to all servers of a pool.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounts(ByWorker<Arc<Count>>);

impl ConnectionCounts {
    /// Returns the same counters with the slots of each server after a reload, which may add servers.
    pub fn with(&self, slots: &[u32]) -> Self {
        let mut counts = self.0.clone();
        for (index, &slots) in (0..).map(WorkerIndex::new).zip(slots) {
            // A shard that reads the old value closes at most one connection too many.
            counts.at(index).slots.store(slots, Ordering::Relaxed);
        }
        Self(counts)
    }

    /// Counts a new connection. Returns `true` if another shard must close an idle one.
    pub(super) fn open(&self, server: WorkerId) -> bool {
        let more =
            |count: &Arc<Count>| count.links.fetch_add(1, Ordering::Relaxed) >= count.slots();
        self.0.get(server).is_some_and(more)
    }

    /// Reports to all shards that a server sent bytes without a request. Returns the number of such reports.
    pub(super) fn report(&self, server: WorkerId) -> u32 {
        let add = |count: &Arc<Count>| count.reports.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.get(server).map_or(0, add)
    }

    /// Returns the number of these reports.
    pub(super) fn reports(&self, server: WorkerIndex) -> u32 {
        self.0.get(server).map_or(0, |count| count.reports.load(Ordering::Relaxed))
    }

    /// Counts a closed connection.
    pub(super) fn close(&self, server: WorkerId) {
        if let Some(count) = self.0.get(server) {
            count.links.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there are more connections than slots.
    pub(super) fn is_short(&self, server: WorkerIndex) -> bool {
        let short = |count: &Arc<Count>| count.links.load(Ordering::Relaxed) > count.slots();
        self.0.get(server).is_some_and(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_beyond_the_slots_asks_for_another_to_go() {
        let room = ConnectionCounts::default().with(&[2, 1]);
        let [one, two] = [0, 1].map(|index| WorkerId::new(index, 1));
        assert_eq!([room.open(one), room.open(one), room.open(one)], [false, false, true]);
        assert!(room.is_short(one.into()) && !room.is_short(two.into()));
        room.close(one);
        assert!(!room.is_short(one.into()));
        assert!(!room.open(two) && room.open(two), "each server has its own");
    }
}
