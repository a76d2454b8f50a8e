//! The free room in the queue of a pool, shared with all shards, and the clients that wait for it.
//!
//! ```text
//!   owner shard:  stores the room after each change of its queue, and notifies waiting shards
//!   all shards:   room - requests on their way to the owner shard - grants of paused clients
//!                      - one request of each other shard whose first client has waited longer
//! ```
//!
//! Paused clients of all shards and pools take tickets from one counter, and each shard stores the ticket of its first
//! client. Two shards may both take the last place. The one request beyond the room then uses the part of the queue that
//! is reserved for it. Pools of a chain share room: see `engine/chain.rs`.
//!
//! No wake-up is lost: a shard registers as waiting before it reads the room and the tickets, and a shard that stores
//! either does so before it reads which shards wait. A shard stays registered until another one notifies it: others may
//! make room after its own last look.

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
    /// Grants of paused clients that are not used yet.
    granted: AtomicU32,
    granted_bytes: AtomicUsize,
    /// Shards to notify when there is room, one bit each.
    waiting: AtomicU64,
    /// Shards with clients that wait, one bit each, and the first client of each shard.
    holding: AtomicU64,
    first: [First; SHARDS_MAX],
}

/// The client of a shard that has waited longest.
#[derive(Debug)]
struct First {
    ticket: AtomicU64,
    bytes: AtomicUsize,
}

const SHARDS_MAX: usize = u64::BITS as usize;

impl Backlog {
    /// A queue with this much room and no request on its way.
    pub const fn new(room: Room) -> Self {
        Self {
            requests: AtomicU32::new(room.requests),
            bytes: AtomicUsize::new(room.bytes),
            coming: AtomicU32::new(0),
            coming_bytes: AtomicUsize::new(0),
            granted: AtomicU32::new(0),
            granted_bytes: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
            holding: AtomicU64::new(0),
            first: [const { First { ticket: AtomicU64::new(0), bytes: AtomicUsize::new(0) } };
                SHARDS_MAX],
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

    /// The room that the owner shard has stored.
    pub(crate) fn room(&self) -> Room {
        let requests = self.requests.load(Ordering::SeqCst);
        Room { requests, bytes: self.bytes.load(Ordering::SeqCst) }
    }

    /// Reserves room for a paused client.
    pub(crate) fn grant(&self, requests: u32, bytes: usize) {
        self.granted.fetch_add(requests, Ordering::SeqCst);
        self.granted_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Returns room that was reserved: it is used now, or not needed.
    pub(crate) fn release(&self, requests: u32, bytes: usize) {
        self.granted.fetch_sub(requests, Ordering::SeqCst);
        self.granted_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// The part of this room that is not reserved.
    pub(crate) fn unreserved(&self, room: Room) -> Room {
        if room == Room::UNLIMITED {
            return room;
        }
        Room {
            requests: room.requests.saturating_sub(self.granted.load(Ordering::SeqCst)),
            bytes: room.bytes.saturating_sub(self.granted_bytes.load(Ordering::SeqCst)),
        }
    }

    /// Stores the ticket and the bytes of the first waiting client of a shard. Returns whether the ticket has changed.
    pub(crate) fn set_first(&self, shard: u32, first: Option<(u64, usize)>) -> bool {
        let bit = 1 << shard;
        let Some((ticket, bytes)) = first else {
            return self.holding.fetch_and(!bit, Ordering::SeqCst) & bit != 0;
        };
        let place = &self.first[shard as usize];
        let before = place.ticket.swap(ticket, Ordering::SeqCst);
        place.bytes.store(bytes, Ordering::SeqCst);
        let held = self.holding.fetch_or(bit, Ordering::SeqCst) & bit != 0;
        !held || before != ticket
    }

    /// The bytes of the first clients of other shards, if their tickets are lower than this one.
    pub(crate) fn earlier(&self, shard: u32, ticket: u64) -> impl Iterator<Item = usize> {
        let mut others = self.holding.load(Ordering::SeqCst) & !(1 << shard);
        std::iter::from_fn(move || {
            while others != 0 {
                let first = &self.first[others.trailing_zeros() as usize];
                others &= others - 1;
                if first.ticket.load(Ordering::SeqCst) < ticket {
                    return Some(first.bytes.load(Ordering::SeqCst));
                }
            }
            None
        })
    }

    /// Registers a shard whose clients wait for room.
    pub fn wait(&self, shard: u32) {
        self.waiting.fetch_or(1 << shard, Ordering::SeqCst);
    }

    /// Removes and returns the other shards whose clients wait. Each is notified once and must register again. `shard`,
    /// the caller, remains registered: nobody notifies it now.
    pub(crate) fn take_waiting(&self, shard: u32) -> impl Iterator<Item = u32> + use<> {
        let me = 1 << shard;
        let waiting = match self.waiting.load(Ordering::SeqCst) & !me {
            0 => 0,
            _ => self.waiting.fetch_and(me, Ordering::SeqCst) & !me,
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
        let room = |backlog: &Backlog| backlog.left_of(backlog.room());
        backlog.send(60);
        assert_eq!(room(&backlog), Room { requests: 1, bytes: 40 });
        assert!(room(&backlog).fits(40) && !room(&backlog).fits(41));
        backlog.send(60);
        assert!(!room(&backlog).fits(0));
        backlog.set(Room { requests: 1, bytes: 40 });
        backlog.arrive(60);
        assert_eq!(room(&backlog), Room { requests: 0, bytes: 0 });
        backlog.set(Room::UNLIMITED);
        assert_eq!(room(&backlog), Room::UNLIMITED);
    }

    #[test]
    fn granted_room_is_reserved_and_the_earlier_first_clients_of_other_shards_are_known() {
        let backlog = Backlog::new(Room { requests: 3, bytes: 100 });
        backlog.grant(1, 40);
        let room = backlog.unreserved(backlog.room());
        assert_eq!(room, Room { requests: 2, bytes: 60 });
        assert_eq!(backlog.unreserved(Room::UNLIMITED), Room::UNLIMITED);
        let earlier = |shard, ticket| backlog.earlier(shard, ticket).collect::<Vec<_>>();
        assert!(backlog.set_first(1, Some((7, 50))));
        assert!(!backlog.set_first(1, Some((7, 50))));
        assert_eq!(earlier(0, 8), [50]);
        assert!(earlier(1, 8).is_empty(), "it is its own");
        assert!(backlog.set_first(0, Some((8, 20))));
        assert!(earlier(1, 7).is_empty(), "it has waited longest");
        assert_eq!(earlier(2, 9), [20, 50]);
        assert!(backlog.set_first(1, None) && !backlog.set_first(1, None));
        assert!(earlier(0, 8).is_empty());
        backlog.release(1, 40);
        assert_eq!(backlog.unreserved(backlog.room()), backlog.room());
    }

    #[test]
    fn every_other_shard_that_waits_is_told_once() {
        let backlog = Backlog::new(Room { requests: 0, bytes: 0 });
        [3, 5, 63, 3].into_iter().for_each(|shard| backlog.wait(shard));
        assert_eq!(backlog.take_waiting(5).collect::<Vec<_>>(), [3, 63]);
        assert_eq!(backlog.take_waiting(5).count(), 0);
        assert_eq!(backlog.take_waiting(3).collect::<Vec<_>>(), [5], "it waits still");
    }
}
