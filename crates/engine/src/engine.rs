//! The engine of a shard: exchanges and pools.
//!
//! Sessions submit and abandon requests. Events of workers go to [`Engine::handle_event`]. Events for sessions collect
//! in [`Engine::finished`] until the shard delivers them. Commands to workers are effects ([`Engine::poll_effect`]),
//! which the shard carries out once a turn, after all input of the turn was handled; so the surplus output of a worker
//! is detected before the worker can receive its next request.
//!
//! What it must never depend on: a worker, a check, a stream, the loop.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use exchange::{
    BindingUse, Cause, End, HealthNotice, ListenerId, Outcome, Phase, PoolId, RequestId, Slice,
    Stamps, Table,
};
use pool::Pool;

use crate::balance::BalanceConfig;
use crate::barrier::Barriers;
use crate::cookies::Cookies;
use crate::exchanges::{Attempt, Exchange, Exchanges, Move, State};
use crate::pool_config::PoolConfig;
use crate::session_affinity::SessionTarget;
use crate::shard_group::ShardGroup;
use crate::shard_link::ShardLink;
use crate::shard_message::ShardMessage;
use flow::backend_event::Trouble;
use flow::client::{Client, Source};
use flow::payload::Payload;
use flow::reply_event::ReplyEvent;
use flow::reply_head::BoxedReplyHead;
use flow::request_meta::RequestMeta;
use flow::request_shape::RequestShape;
use flow::window::Window;
use flow::worker_traits::WorkerTraits;
use observe::access_log::{AccessEntry, AccessLog};
use observe::calendar::{Calendar, Epoch};
use observe::error_log::ErrorLog;
use observe::metrics::{ListenerEnds, Metrics, PoolCounts, Rejects};

mod account;
mod balance;
mod batch;
mod bound;
mod chain;
mod changes;
mod check;
mod controls;
mod cookie;
mod dates;
mod effects;
mod ending;
mod events;
mod fallback_log;
mod member_shard;
mod member_shards;
mod memory;
mod off_shard;
mod outcomes;
mod paused;
mod pausing;
mod pump;
mod queued_request;
mod reload;
mod requests;
mod served;
mod session_programs;
mod session_workers;
mod shared_bindings;
mod splice;
mod tallies;
#[cfg(test)]
mod tests;

use effects::Effects;
use fallback_log::FallbackLog;
use member_shard::MemberShard;
pub use outcomes::{down, refusal};
use outcomes::{lost, whole};
use paused::PausedClients;
pub use queued_request::QueuedRequest;
use queued_request::{WAITING_OVERHEAD, asker};
use session_workers::SessionWorkers;
use tallies::Tallies;

/// The maximum total size of the parts of a reply that is delivered as a whole, in bytes.
const INSIDE_PARTS_MAX: usize = 1 << 20;

/// The lowest HTTP status that is an error.
const FAILURE_MIN: u16 = 400;

/// A pool and the state that the engine keeps for it.
pub struct ServedPool {
    /// The configured name.
    pub name: String,
    /// The queue and the scheduler.
    pub pool: Pool<QueuedRequest>,
    traits: WorkerTraits,
    /// The reason that the pool may have no worker. It applies until a worker has started.
    pub trouble: Option<Box<Trouble>>,
    pub(crate) counts: PoolCounts,
    /// Counters of each worker.
    tallies: Tallies,
    then: Option<PoolId>,
    /// The pool, and all pools whose replies become its requests.
    sources: Vec<PoolId>,
    /// Clients of this shard that wait for room.
    paused: PausedClients,
    pub(crate) balance: BalanceConfig,
    /// The form in which the workers accept HTTP requests.
    takes: RequestShape,
    /// The session affinity cookie.
    cookies: Option<Box<Cookies>>,
    /// The programs that serve one connection each.
    own: Option<SessionWorkers>,
    /// Requests to its programs carry ids that the daemon assigns.
    is_tagged: bool,
    /// This shard is a member shard of the pool: another shard is its owner.
    member_shard: Option<Box<MemberShard>>,
    /// The number of member shards, if this shard is the owner.
    member_shards: u32,
    /// Receives the uses of its bindings, if other daemons share them.
    binding_uses: Option<SyncSender<Vec<BindingUse>>>,
    error_log: ErrorLog,
    fallback_log: FallbackLog,
    /// The pool has effects to carry out or metrics to publish.
    pub(crate) dirty: bool,
    pub(crate) stopping: bool,
}

/// The exchanges and pools of a shard.
pub struct Engine {
    pub(crate) exchanges: Exchanges,
    /// The pools that this shard serves.
    pub pools: Table<PoolId, ServedPool>,
    /// The access log.
    pub access_log: AccessLog,
    /// Counters of malformed messages.
    pub(crate) rejects: Rejects,
    /// Finished requests of each listener, by cause.
    pub listener_ends: Table<ListenerId, ListenerEnds>,
    /// The connection to other shards.
    pub shard_link: ShardLink,
    /// Pending acknowledgements of operator commands.
    pub barriers: Barriers,
    /// Events for clients, delivered by the shard.
    pub finished: Vec<(Client, ReplyEvent)>,
    /// Messages for all clients of a pool.
    pub announced: Vec<(PoolId, Slice)>,
    /// The start of this turn.
    pub now: Instant,
    /// While the shard drains: how long an idle HTTP connection stays open. `None`: the shard is not draining.
    pub drain_keepalive_timeout: Option<Duration>,
    calendar: Calendar,
    effects: Effects,
    /// The pools whose bindings other daemons share.
    shared_bindings: Vec<PoolId>,
    /// Receives changes of the health of servers, if other daemons learn of them.
    health_notices: Option<SyncSender<HealthNotice>>,
}

impl std::fmt::Debug for ServedPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedPool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("shard", &self.shard_link.me())
            .field("exchanges", &self.exchanges.len())
            .finish_non_exhaustive()
    }
}

/// The parts of the engine that record a finished request.
struct Accounting<'a> {
    pools: &'a mut Table<PoolId, ServedPool>,
    listener_ends: &'a mut Table<ListenerId, ListenerEnds>,
    access_log: &'a mut AccessLog,
    now: Instant,
}

impl Engine {
    /// The engine of shard `shard`. `configs`: the pools that it serves; `epoch`: the current time; `seed`: for the
    /// random choices of the pools.
    pub fn new(
        configs: Vec<(PoolId, PoolConfig)>,
        epoch: Epoch,
        seed: u64,
        group: Arc<dyn ShardGroup>,
        shard: u32,
    ) -> Self {
        let now = epoch.instant;
        let exchanges = Exchanges::of_shard(shard, group.count());
        let shard_link = ShardLink::new(group, shard);
        let mut pools = Table::default();
        for ((id, config), seed) in configs.into_iter().zip(seed..) {
            pools.insert_as(id, ServedPool::new(config, id, now, seed, &shard_link));
        }
        let is_shared = |served: &ServedPool| served.binding_uses.is_some();
        let shared = pools.entries().filter(|(_, served)| is_shared(served)).map(|(id, _)| id);
        let mut engine = Self {
            shared_bindings: shared.collect(),
            health_notices: None,
            exchanges,
            shard_link,
            barriers: Barriers::default(),
            pools,
            access_log: AccessLog::default(),
            rejects: Rejects::default(),
            listener_ends: Table::default(),
            finished: Vec::new(),
            announced: Vec::new(),
            now,
            drain_keepalive_timeout: None,
            calendar: Calendar::new(epoch),
            effects: Effects::default(),
        };
        engine.note_chains();
        engine
    }

    /// Submits a request and returns its id. Its outcome is added to [`Self::finished`]; a rejection is added in the
    /// same turn. `entry`: its access log entry, if it is logged.
    pub fn submit(
        &mut self,
        client: Client,
        source: Source,
        (payload, meta): (Payload, RequestMeta),
        pool: PoolId,
        entry: Option<Box<AccessEntry>>,
    ) -> RequestId {
        let id = self.insert(client, source, (pool, None), entry);
        if self.shard_link.lacks_memory() {
            self.reject_for_memory(id, pool);
        } else {
            self.admit(id, pool, payload, meta);
        }
        id
    }

    fn insert(
        &mut self,
        client: Client,
        source: Source,
        (pool, named): (PoolId, Option<u64>),
        log_entry: Option<Box<AccessEntry>>,
    ) -> RequestId {
        let at_us = self.at_us();
        self.exchanges.insert(Exchange {
            client,
            source,
            at_us,
            stamps: Stamps::received(self.now),
            body_end: None,
            log_entry,
            parts: Vec::new(),
            window: Window::default(),
            pool,
            attempt: Attempt { named, ..Attempt::default() },
            json_reply: None,
            state: State::Received,
        })
    }

    pub(crate) fn admit(
        &mut self,
        id: RequestId,
        pool: PoolId,
        payload: Payload,
        mut meta: RequestMeta,
    ) {
        if let Some(owner) = self.shard_link.off_shard(pool) {
            return self.admit_off_shard(id, pool, owner, payload, meta);
        }
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let served = &mut self.pools[pool];
        let (peer, at_us, mut payload) = (exchange.source.peer, exchange.at_us, payload.compact());
        exchange.json_reply = meta.json_reply.or(exchange.json_reply);
        if let Some(json_reply) = &mut meta.json_reply {
            json_reply.wants_head = served.cookies.is_some();
        }
        meta.asker = asker(id, exchange);
        // The cookies of a request from a member shard were read, and possibly removed, there.
        if let Some(cookies) = served.cookies.as_ref().filter(|_| exchange.attempt.named.is_none())
        {
            cookies.ask(&mut payload, exchange);
        }
        let waiting = QueuedRequest { id, peer, at_us, payload, meta };
        served.dirty = true;
        served.counts.requests += 1;
        match served.way(&exchange.client) {
            SessionTarget::Pool => {}
            SessionTarget::Worker(worker) => {
                return self.effects.pinned.push_back((pool, worker, waiting));
            }
            SessionTarget::Lost => return self.end(id, lost()),
        }
        let entry = waiting.entry(self.now, &served.balance.keys, exchange);
        match served.pool.handle_entry(self.now, waiting, entry) {
            Ok(ticket) => exchange.step(Move::Admit(ticket), self.now),
            Err(refused) => self.refuse(id, pool, refused),
        }
    }

    /// Handles the outcome of a worker. It ends the exchange, or becomes a request to the next pool.
    pub(crate) fn complete(&mut self, pool: PoolId, id: RequestId, outcome: Outcome) {
        let then = self.pools[pool].then;
        if self.pools[pool].balance.judges {
            self.record_outcome(pool, id, &outcome);
        }
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.pools[pool].counts.discarded += 1;
            return;
        };
        let mut status = 0;
        if let State::Working(worker) = exchange.state {
            status = std::mem::take(&mut exchange.attempt.status);
            self.pools[pool].tallies.count_end(worker, status, &outcome, self.now);
        }
        if matches!(exchange.client, Client::Nobody) {
            let state = exchange.state;
            return self.forgotten(pool, id, state, outcome);
        }
        match (outcome, then) {
            (Outcome::Reply(body), Some(_)) if body.first() == Some(&b'!') => {
                let text = body.slice(1..body.len());
                self.end(id, Outcome::Ended(End::new(Cause::Worker, Phase::Work), text));
            }
            // Only the body is forwarded. An error status ends the exchange.
            (Outcome::Reply(body), Some(next)) if status < FAILURE_MIN => {
                exchange.step(Move::Next, self.now);
                exchange.pool = next;
                let meta =
                    RequestMeta { json_reply: exchange.json_reply, ..RequestMeta::default() };
                self.admit(id, next, body.into(), meta);
            }
            (outcome, _) => self.end(id, outcome),
        }
    }

    /// Forwards the head of a reply to its client. A callback of this process receives no head.
    fn head(&mut self, pool: PoolId, id: RequestId, mut head: BoxedReplyHead) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.pools[pool].counts.discarded += 1;
            return head.recycle();
        };
        exchange.stamps.first_byte.get_or_insert(self.now);
        let told = head.head();
        if !told.is_interim() {
            exchange.attempt.status = told.status;
        }
        let served = &mut self.pools[pool];
        exchange.attempt.is_bad = served.balance.is_bad(told);
        let is_here = exchange.state.owner().is_none();
        if served.then.is_some() && is_here && told.status < FAILURE_MIN {
            // Only the body is forwarded to the next pool.
            return head.recycle();
        }
        if let Some(log_entry) = exchange.log_entry.as_mut().filter(|_| !told.is_interim()) {
            log_entry.status = told.status;
        }
        served.bind_by(exchange, told, self.now);
        match exchange.client.streamed() {
            Some(client) => self.finished.push((client, ReplyEvent::Head(head))),
            None => head.recycle(),
        }
    }

    /// Forwards a part of a reply to its client.
    fn part(&mut self, pool: PoolId, id: RequestId, part: Slice) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.pools[pool].counts.discarded += 1;
            return;
        };
        exchange.stamps.first_byte.get_or_insert(self.now);
        if let Some(log_entry) = &mut exchange.log_entry {
            log_entry.bytes_out += part.len() as u64;
            log_entry.begin_reply();
        }
        match &exchange.client {
            client @ (Client::Session { .. } | Client::OffShard { .. }) => {
                let bytes = part.len();
                self.finished.extend(client.streamed().map(|to| (to, ReplyEvent::Part(part))));
                self.window_fills(id, bytes);
            }
            Client::Nobody => {}
            Client::Inside(_) | Client::Datagram { .. }
                if exchange.parts.len() + part.len() > INSIDE_PARTS_MAX =>
            {
                let text = format!("its parts hold more than {INSIDE_PARTS_MAX} bytes");
                self.end(id, Outcome::ended(Cause::Reply, Phase::Reply, &text));
            }
            Client::Inside(_) | Client::Datagram { .. } => {
                exchange.parts.extend_from_slice(&part);
                exchange.parts.push(b'\n');
            }
        }
    }

    /// Ends an exchange and sends its outcome to its client.
    pub(crate) fn end(&mut self, id: RequestId, outcome: Outcome) {
        // The exchange is not moved: most requests end here, and it is large.
        let Self { exchanges, pools, listener_ends, access_log, now, .. } = self;
        let Some(exchange) = exchanges.get_mut(id) else { return };
        exchange.stamps.done = Some(*now);
        match exchange.state.owner() {
            Some(owner) => {
                self.shard_link.away -= 1;
                self.shard_link.send(owner, ShardMessage::Abandon(id, outcome.end().cause, None));
            }
            None => {
                let accounting = Accounting { pools, listener_ends, access_log, now: *now };
                accounting.account(id, exchange, &outcome);
            }
        }
        let outcome = whole(std::mem::take(&mut exchange.parts), outcome);
        let client = exchanges.close(id);
        self.finished.extend(client.map(|client| (client, ReplyEvent::End(outcome))));
    }

    /// Delivers an outcome that the owner shard has counted.
    fn deliver_end(&mut self, id: RequestId, outcome: Outcome) {
        if let Some(mut exchange) = self.take_out(id) {
            let outcome = whole(std::mem::take(&mut exchange.parts), outcome);
            self.finished.push((exchange.client, ReplyEvent::End(outcome)));
        }
    }

    /// Replaces every worker of a pool, one at a time, when its replacement is ready. Returns the number of workers;
    /// `None`: there is no such pool.
    pub fn recycle(&mut self, pool: &str) -> Option<u32> {
        let served = self.pools.values_mut().find(|served| served.name == pool)?;
        served.dirty = true;
        served.pool.handle_recycle(self.now);
        let status = served.pool.status();
        tracing::info!(pool, "its workers are replaced, one after the other");
        Some(status.idle + status.busy)
    }

    /// Runs the timers of the pools that are due.
    pub fn handle_time(&mut self) {
        for served in self.pools.values_mut() {
            if served.pool.next_time().is_some_and(|at| at <= self.now) {
                served.dirty = true;
                served.pool.handle_time(self.now);
            }
            served.error_log.handle_time(&served.name, self.now);
        }
    }

    /// When [`Self::handle_time`] must be called next.
    pub fn next_time(&mut self) -> Option<Instant> {
        let mut next = None;
        for served in self.pools.values_mut() {
            let times = [served.pool.next_time(), served.error_log.next_time()];
            next = times.into_iter().flatten().chain(next).min();
        }
        next
    }

    /// Publishes the metrics that have changed.
    pub fn publish(&mut self, metrics: &Metrics) {
        for (pool, served) in self.pools.entries_mut() {
            if std::mem::take(&mut served.dirty) {
                let to = metrics.pool(pool);
                served.counts.publish(to);
                let status = served.pool.gauges();
                to.queued.set(u64::from(status.queued));
                to.queued_bytes.set(status.queued_bytes as u64);
                to.paused.set(served.paused.len() as u64);
                to.busy.set(u64::from(status.busy));
                to.idle.set(u64::from(status.idle));
                to.starting.set(u64::from(status.starting));
                to.ending.set(u64::from(status.retiring));
                to.serving.set(u64::from(status.serving));
                to.ejections.set(served.pool.counts().ejections);
                to.bound.set(u64::from(status.bound));
                to.is_fallback_on.set(u64::from(status.is_fallback_on));
                to.fallback_activations.set(status.fallback_activations);
            }
        }
        self.access_log.flush();
        metrics.shard().access_log_lost.set(self.access_log.lost());
        self.rejects.publish(metrics.rejects());
        for (listener, ends) in self.listener_ends.entries_mut() {
            ends.publish(metrics.listener(listener));
        }
        metrics.shard().exchanges.set(self.exchanges_here() as u64);
    }

    /// Checks the invariants of all pools. For tests.
    pub fn check(&self) {
        for served in self.pools.values() {
            served.pool.check();
        }
    }

    /// The time that the oldest queued request of a pool has waited.
    pub fn oldest(&self, pool: PoolId) -> Option<Duration> {
        let oldest = self.pools[pool].pool.status().oldest?;
        Some(self.now.saturating_duration_since(oldest))
    }
}
