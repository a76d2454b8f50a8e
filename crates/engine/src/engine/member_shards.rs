//! Pools of servers that every shard serves: decisions of a member shard, and its messages to and from the owner shard.
//! See docs/design/shards.md.

use std::sync::Arc;
use std::time::Duration;

use exchange::mutant::{Mutant, active};
use exchange::{PoolId, RequestId, WorkerId, WorkerIndex};

use super::{Engine, QueuedRequest};
use crate::exchanges::Move;
use crate::shard_message::ShardMessage;
use flow::backend_effect::BackendEffect;
use flow::payload::Payload;
use flow::request_meta::RequestMeta;

/// The reason that is recorded for a worker to which a request could not be delivered.
const UNREACHED: &str = "a request could not be brought to it";

impl Engine {
    /// Admits a request whose pool has another owner shard: this shard sends it to a worker, or forwards it to the
    /// owner shard.
    pub(super) fn admit_off_shard(
        &mut self,
        id: RequestId,
        pool: PoolId,
        owner: u32,
        payload: Payload,
        meta: RequestMeta,
    ) {
        let left = match self.pools[pool].member_shard {
            Some(_) => self.give_here(id, pool, payload, meta),
            None => Some((payload, meta)),
        };
        if let Some((payload, meta)) = left {
            self.cross(id, pool, owner, payload, meta);
        }
    }

    /// Sends a request to a worker from this shard, or returns it if the owner shard must decide.
    fn give_here(
        &mut self,
        id: RequestId,
        pool: PoolId,
        payload: Payload,
        meta: RequestMeta,
    ) -> Option<(Payload, RequestMeta)> {
        let exchange = self.exchanges.get_mut(id)?;
        let served = &mut self.pools[pool];
        let (peer, at_us, mut payload) = (exchange.source.peer, exchange.at_us, payload.compact());
        // The owner shard must receive the unchanged request.
        let is_changed = served.cookies.as_ref().is_some_and(|cookies| cookies.changes_requests());
        let whole = is_changed.then(|| payload.clone());
        if let Some(cookies) = &served.cookies {
            cookies.ask(&mut payload, exchange);
        }
        let waiting = QueuedRequest { id, peer, at_us, payload, meta };
        let entry = waiting.entry(self.now, &served.balance.keys, exchange);
        match served.pool.handle_entry_on_member(self.now, waiting, entry) {
            Ok(ticket) => {
                served.dirty = true;
                served.counts.requests += 1;
                exchange.pool = pool;
                exchange.json_reply = meta.json_reply.or(exchange.json_reply);
                exchange.step(Move::Admit(ticket), self.now);
                None
            }
            Err(refused) => {
                (exchange.attempt.named, exchange.attempt.knows) = (None, None);
                let QueuedRequest { payload, meta, .. } = refused.payload;
                Some((whole.unwrap_or(payload), meta))
            }
        }
    }

    /// Forwards a request that this shard could not deliver to a worker.
    pub(super) fn send_home(
        &mut self,
        id: RequestId,
        pool: PoolId,
        payload: Payload,
        meta: RequestMeta,
    ) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if let Some(log_entry) = &mut exchange.log_entry {
            log_entry.retries += 1;
        }
        if let Some(owner) = self.shard_link.off_shard(pool) {
            self.cross(id, pool, owner, payload, meta);
        }
    }

    /// Returns a slot of this worker to the owner shard.
    pub(super) fn mail_token(&mut self, pool: PoolId, worker: WorkerIndex) {
        if active(Mutant::LostSlot) {
            return;
        }
        if let Some(owner) = self.shard_link.off_shard(pool) {
            self.shard_link.send(owner, ShardMessage::Token(pool, worker));
        }
    }

    /// Records the outcome of a request that this shard sent to a worker.
    pub(crate) fn record_worker_outcome(
        &mut self,
        pool: PoolId,
        worker: WorkerId,
        good: bool,
        took: Duration,
    ) {
        let served = &mut self.pools[pool];
        let Some(member_shard) = &mut served.member_shard else {
            return served.pool.handle_result(self.now, worker, good, took);
        };
        let health = served.pool.settings().health;
        let good_in_time = good && health.slow.is_none_or(|slow| took <= slow);
        // The failure rate is computed over all requests.
        let tells = member_shard.tells(worker, good_in_time) || health.fail_rate.is_some();
        let at_home = served.pool.worker_on_owner(worker).filter(|_| tells);
        if let (Some(owner), Some(worker)) = (self.shard_link.off_shard(pool), at_home) {
            self.shard_link.send(owner, ShardMessage::Judged { pool, worker, good, took });
        }
    }

    /// A request could not be delivered to a worker. This counts as a failed health check.
    pub(super) fn unreached(&mut self, pool: PoolId, worker: WorkerId) {
        let served = &self.pools[pool];
        match (self.shard_link.off_shard(pool), served.pool.worker_on_owner(worker)) {
            (None, _) => self.checked(pool, worker, false, UNREACHED.to_owned()),
            (Some(owner), Some(worker)) => {
                self.shard_link.send(owner, ShardMessage::Unreached(pool, worker));
            }
            // The owner shard has no such worker.
            (Some(_), None) => {}
        }
    }

    /// A member shard could not deliver a request to a worker of a pool that this shard owns.
    pub(super) fn unreached_from_branch(&mut self, pool: PoolId, worker: WorkerId) {
        if self.pools[pool].pool.settings().health.checked {
            self.effects.urgent.push_back((pool, BackendEffect::CheckNow { worker }));
            self.checked(pool, worker, false, UNREACHED.to_owned());
        } else {
            self.effects.to_replace.push_back((pool, worker));
        }
    }

    /// Applies an update of the owner shard.
    pub(super) fn handle_update(&mut self, pool: PoolId, update: &pool::PoolUpdate) {
        let served = &mut self.pools[pool];
        served.dirty = true;
        for worker in served.pool.handle_update(self.now, update) {
            self.effects.to_replace.push_back((pool, worker));
        }
    }

    /// Sends changes of the pools that this shard owns to the member shards, followed by the barriers of the commands
    /// that caused them.
    pub fn tell_news(&mut self) {
        if self.shard_link.is_alone() {
            self.barriers.hand_on();
            return;
        }
        for (pool, served) in self.pools.entries_mut() {
            if let Some(update) = served.pool.poll_update() {
                let update = Arc::new(update);
                self.shard_link.tell_all(|| ShardMessage::Update(pool, Arc::clone(&update)));
            }
        }
        for barrier in self.barriers.hand_on() {
            self.shard_link.tell_all(|| ShardMessage::Barrier(Arc::clone(barrier)));
        }
    }
}
