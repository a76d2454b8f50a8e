//! Pausing and resuming clients: see `paused.rs`.

use exchange::PoolId;

use pool::Room;

use super::{Engine, WAITING_OVERHEAD};
use crate::session_affinity::SessionTarget;
use crate::shard_message::{AWAY_MAX, ShardMessage};
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
            Permit::Granted(_) if self.room(pool).fits(bytes) => return true,
            Permit::Free => None,
            Permit::Granted(grant) => Some(grant.ticket),
        };
        if self.is_direct(pool, session, answered) {
            return true;
        }
        // A client with a grant keeps its ticket.
        self.release(pool, *permit);
        let ticket = ticket.unwrap_or_else(|| self.shard_link.backlog(pool).ticket());
        self.wait(pool, session, (ticket, bytes), permit);
        false
    }

    /// Whether there is room for a request in addition to those of the clients that wait.
    fn is_next(&self, pool: PoolId, bytes: usize) -> bool {
        let (backlog, me) = (self.shard_link.backlog(pool), self.shard_link.me());
        let room = backlog.unreserved(self.room(pool));
        self.pools[pool].paused.len() == 0 && backlog.behind(room, me, u64::MAX).fits(bytes)
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
            let backlog = self.shard_link.backlog(pool);
            if !self.shard_link.is_alone() && self.shard_link.off_shard(pool).is_none() {
                // Other shards must not use this room before the end of the iteration.
                let room = self.room_of_chain(pool);
                let requests = room.requests.saturating_sub(u32::from(room != Room::UNLIMITED));
                backlog.set(Room { requests, ..room });
            }
            backlog.release(1, bytes);
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

    /// Notifies other shards with waiting clients if there is room.
    fn pass_room(&mut self, pool: PoolId) {
        let me = self.shard_link.me();
        let room = self.room(pool);
        let backlog = self.shard_link.backlog(pool);
        if self.shard_link.is_alone() || !backlog.unreserved(room).fits(0) {
            return;
        }
        for shard in backlog.take_waiting(me) {
            self.shard_link.send(shard, ShardMessage::Room);
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
            if self.pools[pool].paused.len() == 0 {
                continue;
            }
            let (me, before) = (self.shard_link.me(), woken.len());
            let backlog = self.shard_link.backlog(pool);
            // This must precede the read of the room: see `backlog.rs`.
            backlog.wait(me);
            let room = backlog.unreserved(self.room(pool));
            let behind = |room, ticket| backlog.behind(room, me, ticket);
            self.pools[pool].paused.take_next(room, behind, woken);
            for (_, grant) in &woken[before..] {
                backlog.grant(grant.requests, grant.bytes);
            }
            if woken.len() > before {
                self.pools[pool].dirty = true;
                self.note_first(pool);
            }
        }
    }

    /// Publishes the room of the pools that this shard owns.
    pub fn tell_room(&mut self) {
        if self.shard_link.is_alone() {
            return;
        }
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            if self.shard_link.off_shard(pool).is_none() {
                let room = self.room_of_chain(pool);
                let backlog = self.shard_link.backlog(pool);
                backlog.set(room);
                self.pass_room(pool);
            } else if std::mem::take(&mut self.pools[pool].paused.has_spent) {
                self.pass_room(pool);
            }
        }
    }

    /// Counts the arrival of a request of another shard.
    pub(super) fn has_arrived(&mut self, pool: PoolId, bytes: usize) {
        let room = self.room_of_chain(pool);
        let backlog = self.shard_link.backlog(pool);
        backlog.set(room);
        backlog.arrive(bytes);
    }

    /// The room of a pool for clients that can wait.
    fn room(&self, pool: PoolId) -> Room {
        let backlog = self.shard_link.backlog(pool);
        match self.shard_link.off_shard(pool) {
            Some(_) => {
                let room = backlog.room();
                let away = AWAY_MAX.saturating_sub(self.shard_link.away);
                Room { requests: room.requests.min(away), ..room }
            }
            None if self.shard_link.is_alone() => self.room_of_chain(pool),
            None => backlog.left_of(self.room_of_chain(pool)),
        }
    }

    /// The room of a pool and of the pools that its replies go to. This shard owns all of them.
    fn room_of_chain(&self, pool: PoolId) -> Room {
        let mut room = self.room_behind_feeders(pool);
        let mut next = self.pools[pool].then;
        while let Some(at) = next {
            let behind = self.room_behind_feeders(at);
            room.requests = room.requests.min(behind.requests);
            room.bytes = room.bytes.min(behind.bytes);
            next = self.pools[at].then;
        }
        room
    }

    /// The room of a pool that is not needed by requests in the pools before it.
    fn room_behind_feeders(&self, pool: PoolId) -> Room {
        let served = &self.pools[pool];
        let room = served.pool.room();
        if !served.is_fed || room == Room::UNLIMITED {
            return room;
        }
        let (queued, in_use) = self.load_of_feeders(pool);
        let places = served.pool.queue_length().saturating_sub(served.pool.usage().0);
        let requests = room.requests.saturating_sub(queued);
        Room { requests: requests.min(places.saturating_sub(queued + in_use)), ..room }
    }

    /// The numbers of queued and of in-flight requests in the pools before a pool.
    fn load_of_feeders(&self, pool: PoolId) -> (u32, u32) {
        let feeders = self.pools.entries().filter(|(_, served)| served.then == Some(pool));
        feeders.fold((0_u32, 0_u32), |(queued, in_use), (feeder, served)| {
            let own = served.pool.usage();
            let before = self.load_of_feeders(feeder);
            (
                queued.saturating_add(own.0).saturating_add(before.0),
                in_use.saturating_add(own.1).saturating_add(before.1),
            )
        })
    }

    /// Determines which pools receive the replies of other pools.
    pub fn note_feeders(&mut self) {
        let fed: Vec<PoolId> = self.pools.values().filter_map(|served| served.then).collect();
        for (pool, served) in self.pools.entries_mut() {
            served.is_fed = fed.contains(&pool);
        }
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
