//! What every shard knows of the queue of a pool at home on another shard: how much it still takes.
//!
//! ```text
//!   home:    stores the room after each change of its queue, and tells the shards that wait for it
//!   others:  room - requests on their way to the home of the pool
//! ```
//!
//! Two shards may both take the last place: then one request more arrives than there was room for,
//! which the part of the queue that paused clients leave free holds. A wake-up is not lost: a shard
//! says that it waits before it looks at the room again, and the home stores the room before it looks
//! who waits.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use pool::Room;

/// The queue of one pool.
#[derive(Debug)]
pub struct Backlog {
    requests: AtomicU32,
    bytes: AtomicUsize,
    /// Requests on their way from other shards, and the bytes that they hold.
    coming: AtomicU32,
    coming_bytes: AtomicUsize,
    /// Shards with clients that wait for room, a bit each.
    waiting: AtomicU64,
}

impl Backlog {
    pub const fn new(room: Room) -> Self {
        Self {
            requests: AtomicU32::new(room.requests),
            bytes: AtomicUsize::new(room.bytes),
            coming: AtomicU32::new(0),
            coming_bytes: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
        }
    }

    /// The home says how much its queue takes.
    pub fn set(&self, room: Room) {
        self.requests.store(room.requests, Ordering::SeqCst);
        self.bytes.store(room.bytes, Ordering::SeqCst);
    }

    /// A request goes to the home.
    pub fn send(&self, bytes: usize) {
        self.coming.fetch_add(1, Ordering::SeqCst);
        self.coming_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// It has arrived there, and the room that it leaves was stored.
    pub fn arrive(&self, bytes: usize) {
        self.coming.fetch_sub(1, Ordering::SeqCst);
        self.coming_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// What of this room is not for requests that are on their way already.
    pub(crate) fn left_of(&self, room: Room) -> Room {
        if room == Room::UNLIMITED {
            return room;
        }
        Room {
            requests: room.requests.saturating_sub(self.coming.load(Ordering::SeqCst)),
            bytes: room.bytes.saturating_sub(self.coming_bytes.load(Ordering::SeqCst)),
        }
    }

    /// What another shard than the home may send.
    pub fn room(&self) -> Room {
        let requests = self.requests.load(Ordering::SeqCst);
        self.left_of(Room { requests, bytes: self.bytes.load(Ordering::SeqCst) })
    }

    /// Clients of this shard wait for room.
    pub fn wait(&self, shard: u32) {
        self.waiting.fetch_or(1 << shard, Ordering::SeqCst);
    }

    /// The shards whose clients wait. They are notified of room once, and must ask again.
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
