//! The free room in the queue of a pool, shared with all shards.
//!
//! ```text
//!   owner shard:   stores the room after each change of its queue, and notifies waiting shards
//!   other shards:  room - requests on their way to the owner shard
//! ```
//!
//! Two shards may both take the last place. The one request beyond the room then uses the part of the queue that is
//! reserved for it. No wake-up is lost: a shard registers as waiting before it reads the room again, and the owner
//! shard stores the room before it reads which shards wait.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use pool::Room;

/// The free room in the queue of one pool.
#[derive(Debug)]
pub struct Backlog {
    requests: AtomicU32,
    bytes: AtomicUsize,
    /// Requests on their way from other shards, and their bytes.
    coming: AtomicU32,
    coming_bytes: AtomicUsize,
    /// Shards with clients that wait for room, one bit each.
    waiting: AtomicU64,
}

impl Backlog {
    /// A queue with this much room and no request on its way.
    pub const fn new(room: Room) -> Self {
        Self {
            requests: AtomicU32::new(room.requests),
            bytes: AtomicUsize::new(room.bytes),
            coming: AtomicU32::new(0),
            coming_bytes: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
        }
    }

    /// Stores the room. Called by the owner shard.
    pub fn set(&self, room: Room) {
        self.requests.store(room.requests, Ordering::SeqCst);
        self.bytes.store(room.bytes, Ordering::SeqCst);
    }

    /// Counts a request that is sent to the owner shard.
    pub fn send(&self, bytes: usize) {
        self.coming.fetch_add(1, Ordering::SeqCst);
        self.coming_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts a request that has arrived at the owner shard, after the new room was stored.
    pub fn arrive(&self, bytes: usize) {
        self.coming.fetch_sub(1, Ordering::SeqCst);
        self.coming_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// The part of `room` that is not needed by requests on their way.
    pub(crate) fn left_of(&self, room: Room) -> Room {
        if room == Room::UNLIMITED {
            return room;
        }
        Room {
            requests: room.requests.saturating_sub(self.coming.load(Ordering::SeqCst)),
            bytes: room.bytes.saturating_sub(self.coming_bytes.load(Ordering::SeqCst)),
        }
    }

    /// The room that is left for requests of other shards.
    pub fn room(&self) -> Room {
        let requests = self.requests.load(Ordering::SeqCst);
        self.left_of(Room { requests, bytes: self.bytes.load(Ordering::SeqCst) })
    }

    /// Registers a shard whose clients wait for room.
    pub fn wait(&self, shard: u32) {
        self.waiting.fetch_or(1 << shard, Ordering::SeqCst);
    }

    /// Removes and returns the shards whose clients wait. Each is notified once and must register again.
    pub(crate) fn take_waiting(&self) -> impl Iterator<Item = u32> {
        let waiting = match self.waiting.load(Ordering::SeqCst) {
            0 => 0,
            _ => self.waiting.swap(0, Ordering::SeqCst),
        };
        (0..u64::BITS).filter(move |shard| waiting & 1 << shard != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_on_their_way_take_room_until_they_have_arrived() {
        let backlog = Backlog::new(Room { requests: 2, bytes: 100 });
        backlog.send(60);
        assert_eq!(backlog.room(), Room { requests: 1, bytes: 40 });
        assert!(backlog.room().fits(40) && !backlog.room().fits(41));
        backlog.send(60);
        assert!(!backlog.room().fits(0));
        backlog.set(Room { requests: 1, bytes: 40 });
        backlog.arrive(60);
        assert_eq!(backlog.room(), Room { requests: 0, bytes: 0 });
        backlog.set(Room::UNLIMITED);
        assert_eq!(backlog.room(), Room::UNLIMITED);
    }

    #[test]
    fn every_shard_that_waits_is_told_once() {
        let backlog = Backlog::new(Room { requests: 0, bytes: 0 });
        [3, 63, 3].into_iter().for_each(|shard| backlog.wait(shard));
        assert_eq!(backlog.take_waiting().collect::<Vec<_>>(), [3, 63]);
        assert_eq!(backlog.take_waiting().count(), 0);
    }
}
