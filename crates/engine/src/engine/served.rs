//! Creation of a pool from its configuration, and its end once it can receive no more requests.

use std::time::Instant;

use exchange::{PoolId, WorkerId, WorkerIndex};
use pool::Pool;

use super::fallback_log::FallbackLog;
use super::member_shard::MemberShard;
use super::paused::PausedClients;
use super::session_workers::SessionWorkers;
use super::tallies::Tallies;
use super::{Engine, PoolCounts, ServedPool};
use crate::cookies::Cookies;
use crate::pool_config::PoolConfig;
use crate::shard_link::ShardLink;
use crate::shard_message::ShardMessage;
use observe::error_log::ErrorLog;
use observe::status::WorkerTally;

impl ServedPool {
    pub(super) fn new(
        config: PoolConfig,
        id: PoolId,
        now: Instant,
        seed: u64,
        shard_link: &ShardLink,
    ) -> Self {
        let PoolConfig {
            name,
            pool,
            then,
            mut balance,
            takes,
            own,
            is_tagged,
            traits,
            binding_uses,
        } = config;
        let mut pool = Pool::new(pool, now, seed);
        let (mut member_shard, mut member_shards) = (None, 0);
        if let Some((shards, tokens)) = shard_link.shares(id) {
            let is_owner = shard_link.off_shard(id).is_none();
            pool.share(tokens, is_owner);
            member_shard = (!is_owner).then(Box::<MemberShard>::default);
            member_shards = if is_owner { shards } else { 0 };
        }
        let affinity_target = |name: &str| pool.affinity_target_named(name);
        let cookies =
            balance.cookie.take().map(|config| Box::new(Cookies::new(config, affinity_target)));
        Self {
            pool,
            traits,
            trouble: None,
            cookies,
            counts: PoolCounts::default(),
            tallies: Tallies::default(),
            error_log: ErrorLog::default(),
            fallback_log: FallbackLog::default(),
            dirty: true,
            stopping: false,
            name,
            then,
            sources: vec![id],
            paused: PausedClients::default(),
            balance,
            takes,
            own: own.map(SessionWorkers::new),
            is_tagged,
            member_shard,
            member_shards,
            binding_uses,
        }
    }
}

impl ServedPool {
    /// The counters of a worker.
    pub fn tally(&self, worker: WorkerIndex, now: Instant) -> WorkerTally {
        self.tallies.shown(worker, now)
    }

    /// Appends the name of a worker, as in the log, `/status` and its environment.
    pub(super) fn write_name(&self, worker: WorkerId, out: &mut String) {
        use std::fmt::Write;
        let written = match self.pool.name_at(worker.into()) {
            Some(name) => write!(out, "{}/{name}", self.name),
            None => write!(out, "{}/{}", self.name, worker.index()),
        };
        debug_assert!(written.is_ok(), "memory takes all");
    }

    /// Registers a started worker for affinity cookies.
    pub(super) fn greet(&mut self, worker: WorkerId) {
        if let (Some(cookies), Some(affinity_target)) =
            (&mut self.cookies, self.pool.affinity_target(worker))
        {
            cookies.handle_started(worker, affinity_target);
        }
    }
}

impl Engine {
    /// Stops pools that can receive no more requests: a pool stops after the pools whose replies it receives. `true`:
    /// all pools are stopping.
    pub fn stop_idle_pools(&mut self) -> bool {
        if !self.shard_link.all_serve() {
            return false;
        }
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            let feeders_stopped =
                self.pools.values().all(|feeder| feeder.then != Some(pool) || feeder.stopping);
            let served = &mut self.pools[pool];
            let idle = served.pool.is_idle() && served.member_shards == 0;
            if feeders_stopped && !served.stopping && idle {
                if let (Some(_), Some(owner)) =
                    (&served.member_shard, self.shard_link.off_shard(pool))
                {
                    self.shard_link.send(owner, ShardMessage::Ended(pool));
                }
                served.stopping = true;
                served.dirty = true;
                served.pool.handle_drain(self.now);
                served.pool.handle_stop(self.now);
            }
        }
        self.pools.values().all(|served| served.stopping)
    }
}
