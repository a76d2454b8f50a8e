//! Chains: pools that are joined by `then` share room.
//!
//! ```text
//!   a ──▶ b ─┐
//!            ├──▶ d      a request to `a` needs room in the queues of `a`, `b` and `d`; one to `c` in those of `c` and `d`
//!         c ─┘
//! ```
//!
//! The *path* of a pool is the pool and those that its replies go to; its *sources* are the pool and those whose replies
//! come to it. The room of each pool is what the requests in its sources leave of it. Room that is reserved, and requests
//! on their way between shards, are counted once, at the pool that they were sent to: they take room on its whole path.
//!
//! All pools of a chain have the same owner shard.

use std::iter::successors;

use exchange::PoolId;
use pool::Room;

use super::Engine;
use crate::shard_message::AWAY_MAX;

impl Engine {
    /// Determines which pools receive the replies of which others.
    pub fn note_chains(&mut self) {
        self.pools.values_mut().for_each(|served| served.sources.clear());
        let mut next = 0;
        while let Some(source) = self.pools.next_id(&mut next) {
            let mut at = Some(source);
            while let Some(pool) = at {
                self.pools[pool].sources.push(source);
                at = self.pools[pool].then;
            }
        }
    }

    /// A pool, and the pools that its replies go to, in their order.
    pub(super) fn path(&self, pool: PoolId) -> impl Iterator<Item = PoolId> {
        successors(Some(pool), |pool| self.pools[*pool].then)
    }

    /// The last pool of the chain of a pool: its sources are the whole chain.
    pub(super) fn end_of_chain(&self, pool: PoolId) -> PoolId {
        self.path(pool).last().unwrap_or(pool)
    }

    /// Whether a request of `bytes` bytes has room on the path of a pool. Reserved room counts as free.
    pub(super) fn has_room(&self, pool: PoolId, bytes: usize) -> bool {
        self.path(pool).all(|pool| self.room(pool).fits(bytes))
    }

    /// Whether there is room on the path of a pool that is not reserved, for requests of any shard.
    pub(super) fn has_unreserved(&self, pool: PoolId) -> bool {
        self.path(pool).all(|pool| self.less_reserved(pool, self.room_of_all(pool)).fits(0))
    }

    /// The room of a pool that is left for the client with this ticket. The first clients of other shards with lower
    /// tickets take theirs before it, if the pools before this one have room for them. So do the clients of other pools
    /// of this shard, if `ticket` is `None`: the client comes after all that wait.
    pub(super) fn room_behind(&self, pool: PoolId, ticket: Option<u64>) -> Room {
        let mut room = self.unreserved(pool);
        if room == Room::UNLIMITED {
            return room;
        }
        let me = self.shard_link.me();
        for &source in &self.pools[pool].sources {
            let ours = self.pools[source].paused.first().filter(|_| ticket.is_none());
            let others = self.shard_link.backlog(source).earlier(me, ticket.unwrap_or(u64::MAX));
            for bytes in ours.map(|(_, bytes)| bytes).into_iter().chain(others) {
                let mut before = self.path(source).take_while(|at| *at != pool);
                if before.all(|at| self.unreserved(at).fits(bytes)) {
                    room.requests = room.requests.saturating_sub(1);
                    room.bytes = room.bytes.saturating_sub(bytes);
                }
            }
        }
        room
    }

    /// The room of a pool for requests of this shard that is not reserved.
    pub(super) fn unreserved(&self, pool: PoolId) -> Room {
        self.less_reserved(pool, self.room(pool))
    }

    fn less_reserved(&self, pool: PoolId, room: Room) -> Room {
        let sources = self.pools[pool].sources.iter();
        sources.fold(room, |room, source| self.shard_link.backlog(*source).unreserved(room))
    }

    /// The room of a pool for requests of this shard.
    fn room(&self, pool: PoolId) -> Room {
        let room = self.room_of_all(pool);
        if self.shard_link.off_shard(pool).is_none() {
            return room;
        }
        let away = AWAY_MAX.saturating_sub(self.shard_link.away);
        Room { requests: room.requests.min(away), ..room }
    }

    /// The room of a pool for clients that can wait.
    fn room_of_all(&self, pool: PoolId) -> Room {
        let room = match self.shard_link.off_shard(pool) {
            Some(_) => self.shard_link.backlog(pool).room(),
            None => self.room_behind_sources(pool),
        };
        if self.shard_link.is_alone() {
            return room;
        }
        let sources = self.pools[pool].sources.iter();
        sources.fold(room, |room, source| self.shard_link.backlog(*source).left_of(room))
    }

    /// The room of a pool of this shard that is not needed by requests in the pools before it.
    pub(super) fn room_behind_sources(&self, pool: PoolId) -> Room {
        let served = &self.pools[pool];
        let room = served.pool.room();
        if served.sources.len() == 1 || room == Room::UNLIMITED {
            return room;
        }
        let feeders = served.sources.iter().filter(|source| **source != pool);
        let (queued, in_use) = feeders.fold((0_u32, 0_u32), |(queued, in_use), feeder| {
            let usage = self.pools[*feeder].pool.usage();
            (queued.saturating_add(usage.0), in_use.saturating_add(usage.1))
        });
        let places = served.pool.queue_length().saturating_sub(served.pool.usage().0);
        let requests = room.requests.saturating_sub(queued);
        let places = places.saturating_sub(queued.saturating_add(in_use));
        Room { requests: requests.min(places), ..room }
    }
}
