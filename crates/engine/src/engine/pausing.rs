//! Pausing and resuming clients: see `paused.rs`.

use exchange::PoolId;

use pool::Room;

use super::{Engine, WAITING_OVERHEAD};
use crate::session_affinity::Way;
use crate::shard_message::{AWAY_MAX, ShardMessage};
use flow::ids::SessionId;
use flow::permit::Permit;

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
        if permit.is_waiting() {
            return false;
        }
        let bytes = held_max(bytes);
        let is_next = *permit != Permit::Free || self.pools[pool].paused.len() == 0;
        if is_next && self.room(pool).fits(bytes) || self.is_direct(pool, session, answered) {
            return true;
        }
        let served = &mut self.pools[pool];
        served.dirty = true;
        *permit = Permit::Waiting(served.paused.push(session, bytes));
        false
    }

    /// Removes a client from the waiting ones: it is gone, or its requests go to another pool.
    pub(crate) fn stop_waiting(&mut self, pool: PoolId, permit: &mut Permit) {
        if let Permit::Waiting(ticket) = std::mem::take(permit) {
            let served = &mut self.pools[pool];
            served.dirty = true;
            served.paused.clients.remove(&ticket);
        }
    }

    /// Whether any client waits for room.
    #[inline]
    pub fn has_paused(&self) -> bool {
        self.pools.values().any(|served| served.paused.len() > 0)
    }

    /// Appends the clients that have room to `woken`, with the number of requests that each may send.
    pub fn wake_paused(&mut self, woken: &mut Vec<(SessionId, u32)>) {
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            if self.pools[pool].paused.len() == 0 {
                continue;
            }
            if self.shard_link.off_shard(pool).is_some() {
                // This must precede the read of the room: see `backlog.rs`.
                self.shard_link.backlog(pool).wait(self.shard_link.me());
            }
            let (room, before) = (self.room(pool), woken.len());
            self.pools[pool].paused.take_next(room, woken);
            self.pools[pool].dirty |= woken.len() > before;
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
                if room.fits(0) {
                    let shards: Vec<u32> = backlog.take_waiting().collect();
                    for shard in shards {
                        self.shard_link.tell(shard, ShardMessage::Room);
                    }
                }
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
            None => own.way(session) != Way::Pool,
        }
    }
}
