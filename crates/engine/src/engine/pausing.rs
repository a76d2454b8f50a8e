//! Pausing and resuming clients: see `paused.rs`.

use exchange::PoolId;

use pool::Room;

use super::{Engine, WAITING_OVERHEAD};
use crate::session_affinity::SessionTarget;
use crate::shard_message::ShardMessage;
use flow::ids::SessionId;
use flow::permit::{Grant, Permit};

/// The memory of a request of at most `bytes` bytes in the queue: the size class of its block.
fn held_max(bytes: usize) -> usize {
    let rounded = bytes.saturating_mul(2).saturating_add(128 << 10).min(bytes.saturating_mul(4));
    rounded.saturating_add(64 + WAITING_OVERHEAD)
}

impl Engine {
    /// Whether a client may send a request of at most `bytes` bytes to a pool. Otherwise it is registered as waiting,
    /// and [`Self::wake_paused`] returns it when there is room.
    pub(crate) fn may_send(
        &mut self,
        (pool, session, answered): (PoolId, SessionId, bool),
        permit: &mut Permit,
        bytes: usize,
    ) -> bool {
        let bytes = held_max(bytes);
        let ticket = match permit {
            Permit::Waiting(_) | Permit::Parked(_) => return false,
            Permit::Free if self.is_next(pool, bytes) => return true,
            Permit::Granted(_) if self.has_room(pool, bytes) => return true,
            Permit::Free => None,
            Permit::Granted(grant) => Some(grant.ticket),
        };
        if self.is_direct(pool, session, answered) {
            return true;
        }
        // A client with a grant keeps its ticket.
        self.release(pool, *permit);
        let ticket = ticket.unwrap_or_else(|| self.shard_link.ticket());
        self.wait(pool, session, (ticket, bytes), permit);
        false
    }

    /// Whether there is room for a request in addition to those of the clients that wait.
    fn is_next(&self, pool: PoolId, bytes: usize) -> bool {
        self.pools[pool].paused.len() == 0
            && self.path(pool).all(|pool| self.room_behind(pool, None).fits(bytes))
    }

    /// Makes a client wait with this ticket.
    fn wait(
        &mut self,
        pool: PoolId,
        session: SessionId,
        (ticket, bytes): (u64, usize),
        permit: &mut Permit,
    ) {
        let served = &mut self.pools[pool];
        served.dirty = true;
        served.paused.insert(ticket, session, bytes);
        *permit = Permit::Waiting(ticket);
        self.note_first(pool);
    }

    /// Uses one request of a grant.
    pub fn spend_permit(&mut self, pool: PoolId, permit: &mut Permit) {
        if let Permit::Granted(grant) = permit {
            let bytes = std::mem::take(&mut grant.bytes);
            if !self.shard_link.is_alone() && self.shard_link.off_shard(pool).is_none() {
                // Other shards must not use this room before the end of the iteration.
                for at in self.path(pool) {
                    let room = self.room_behind_sources(at);
                    let requests = room.requests.saturating_sub(u32::from(room != Room::UNLIMITED));
                    self.shard_link.backlog(at).set(Room { requests, ..room });
                }
            }
            self.shard_link.backlog(pool).release(1, bytes);
            self.pools[pool].paused.has_spent = true;
            grant.requests = grant.requests.saturating_sub(1);
            if grant.requests == 0 {
                *permit = Permit::Free;
            }
        }
    }

    /// Returns the grant of a client whose session cannot be read now. The client keeps its ticket.
    pub fn park(&mut self, pool: PoolId, permit: &mut Permit) {
        if let Permit::Granted(grant) = *permit {
            self.release(pool, *permit);
            *permit = Permit::Parked(grant);
        }
    }

    /// Lets a parked client wait again with its ticket.
    pub fn wait_again(&mut self, pool: PoolId, session: SessionId, permit: &mut Permit) {
        if let Permit::Parked(Grant { ticket, bytes, .. }) = *permit {
            self.wait(pool, session, (ticket, bytes), permit);
        }
    }

    /// Removes a client from the waiting ones and returns its grant: it is gone, has no request to send, or its requests
    /// go to another pool.
    pub fn stop_waiting(&mut self, pool: PoolId, permit: &mut Permit) {
        let before = std::mem::take(permit);
        self.release(pool, before);
        if let Permit::Waiting(ticket) = before {
            let served = &mut self.pools[pool];
            served.dirty = true;
            served.paused.remove(ticket);
            self.note_first(pool);
        }
    }

    /// Returns a grant that is not used.
    fn release(&mut self, pool: PoolId, permit: Permit) {
        if let Permit::Granted(Grant { requests, bytes, .. }) = permit {
            self.shard_link.backlog(pool).release(requests, bytes);
            self.pass_room(pool);
        }
    }

    /// Publishes the first waiting client of this shard.
    fn note_first(&mut self, pool: PoolId) {
        if self.shard_link.is_alone() {
            return;
        }
        let first = self.pools[pool].paused.first();
        if self.shard_link.backlog(pool).set_first(self.shard_link.me(), first) {
            self.pass_room(pool);
        }
    }

    /// Notifies other shards with clients that wait in the chain of a pool, where there is room.
    fn pass_room(&mut self, pool: PoolId) {
        if self.shard_link.is_alone() {
            return;
        }
        let end = self.end_of_chain(pool);
        for at in 0..self.pools[end].sources.len() {
            self.pass_room_of(self.pools[end].sources[at]);
        }
    }

    /// Notifies other shards with clients that wait for room in a pool, if there is room.
    fn pass_room_of(&mut self, pool: PoolId) {
        if self.has_unreserved(pool) {
            let me = self.shard_link.me();
            for shard in self.shard_link.backlog(pool).take_waiting(me) {
                self.shard_link.send(shard, ShardMessage::Room);
            }
        }
    }

    /// Whether any client waits for room.
    #[inline]
    pub fn has_paused(&self) -> bool {
        self.pools.values().any(|served| served.paused.len() > 0)
    }

    /// Appends the clients that have room to `woken`, with their grants.
    pub fn wake_paused(&mut self, woken: &mut Vec<(SessionId, Grant)>) {
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            // Each chain once.
            if self.pools[pool].then.is_none() && self.begin_wake(pool) {
                self.wake_chain(pool, woken);
            }
        }
    }

    /// Registers this shard as waiting for room in the chain with this last pool, and determines how the room is divided.
    /// `false`: no client waits.
    fn begin_wake(&mut self, end: PoolId) -> bool {
        let (me, mut waits) = (self.shard_link.me(), false);
        for &pool in &self.pools[end].sources {
            if self.pools[pool].paused.len() > 0 {
                // This must precede all reads of the room: see `backlog.rs`.
                self.shard_link.backlog(pool).wait(me);
                waits = true;
            }
        }
        if !waits {
            return false;
        }
        for at in 0..self.pools[end].sources.len() {
            let pool = self.pools[end].sources[at];
            let sources = self.pools[pool].sources.iter();
            let waiting = sources.map(|source| self.pools[*source].paused.len()).sum();
            let room = self.unreserved(pool);
            self.pools[pool].paused.divide(room, waiting);
        }
        true
    }

    /// Wakes the clients of a chain in the order of their tickets. One without room holds up all that need room in the
    /// first pool on its path that has none for it, and no others.
    fn wake_chain(&mut self, end: PoolId, woken: &mut Vec<(SessionId, Grant)>) {
        let before = woken.len();
        while let Some((ticket, bytes, pool)) = self.first_in_chain(end) {
            let (mut requests, mut full) = (u32::MAX, None);
            for at in self.path(pool) {
                let left = self.room_behind(at, Some(ticket));
                if !left.fits(bytes) {
                    full = Some(at);
                    break;
                }
                requests = requests.min(left.requests).min(self.pools[at].paused.share);
            }
            if let Some(full) = full {
                self.pools[full].paused.is_full = true;
                continue;
            }
            let served = &mut self.pools[pool];
            served.dirty = true;
            if let Some(session) = served.paused.remove(ticket) {
                self.shard_link.backlog(pool).grant(requests, bytes);
                woken.push((session, Grant { ticket, requests, bytes }));
            }
        }
        if woken.len() > before {
            for at in 0..self.pools[end].sources.len() {
                self.note_first(self.pools[end].sources[at]);
            }
        }
    }

    /// The ticket, the bytes and the pool of the first client of a chain for which no pool on its path is full.
    fn first_in_chain(&self, end: PoolId) -> Option<(u64, usize, PoolId)> {
        let firsts = self.pools[end].sources.iter().filter_map(|&pool| {
            let (ticket, bytes) = self.pools[pool].paused.first()?;
            let is_full = self.path(pool).any(|at| self.pools[at].paused.is_full);
            (!is_full).then_some((ticket, bytes, pool))
        });
        firsts.min_by_key(|(ticket, ..)| *ticket)
    }

    /// Publishes the room of the pools that this shard owns.
    pub fn tell_room(&mut self) {
        if self.shard_link.is_alone() {
            return;
        }
        // All of it is stored before the first read of which shards wait: see `backlog.rs`.
        for (pool, _) in self.pools.entries() {
            if self.shard_link.off_shard(pool).is_none() {
                self.shard_link.backlog(pool).set(self.room_behind_sources(pool));
            }
        }
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            if self.shard_link.off_shard(pool).is_none() {
                self.pass_room_of(pool);
            } else if std::mem::take(&mut self.pools[pool].paused.has_spent) {
                self.pass_room(pool);
            }
        }
    }

    /// Counts the arrival of a request of another shard.
    pub(super) fn has_arrived(&mut self, pool: PoolId, bytes: usize) {
        for at in self.path(pool) {
            self.shard_link.backlog(at).set(self.room_behind_sources(at));
        }
        self.shard_link.backlog(pool).arrive(bytes);
    }

    /// Whether requests of a client go to its own program without queueing.
    fn is_direct(&self, pool: PoolId, session: SessionId, answered: bool) -> bool {
        let Some(own) = &self.pools[pool].own else { return false };
        match self.shard_link.off_shard(pool) {
            Some(_) => answered,
            None => own.way(session) != SessionTarget::Pool,
        }
    }
}
