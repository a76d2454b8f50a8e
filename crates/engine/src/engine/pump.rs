//! Turns decisions of the pools into commands, once a turn and after all of its input was handled.

use std::time::Duration;

use exchange::mutant::{Mutant, active};
use exchange::{Cause, Outcome, PoolId, RequestId, WorkerId};
use pool::{Effect, Refused};

use super::effects::Step;
use super::outcomes::lost;
use super::{Engine, QueuedRequest};
use crate::exchanges::{Move, State};
use flow::backend_effect::BackendEffect;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::reply_event::ReplyEvent;

impl Engine {
    /// The next urgent command. All others wait for the end of the turn.
    #[inline]
    pub fn poll_urgent(&mut self) -> Option<(PoolId, BackendEffect)> {
        self.effects.urgent.pop_front()
    }

    /// The next command, until there are none. The caller carries out each one and handles the resulting events
    /// before it polls the next.
    pub fn poll_effect(&mut self) -> Option<(PoolId, BackendEffect)> {
        if let Some(effect) = self.poll_urgent() {
            return Some(effect);
        }
        loop {
            let next = match self.effects.step {
                Step::Pools => self.next_of_pools(),
                Step::Pinned(left) => self.next_pinned(left),
                Step::Replaced(_) | Step::Throttled | Step::Surplus | Step::Controls(_) => {
                    self.effects.next()
                }
                Step::Returned => {
                    let is_idle = self.effects.begin_round();
                    if !self.give_back() && is_idle {
                        return None;
                    }
                    None
                }
            };
            if next.is_some() {
                return next;
            }
        }
    }

    /// The next command from the decisions of the pools, one pool after the other.
    #[inline]
    fn next_of_pools(&mut self) -> Option<(PoolId, BackendEffect)> {
        loop {
            let pool = match self.effects.pool {
                Some(pool) => pool,
                None => {
                    let Some(pool) = self.pools.next_id(&mut self.effects.next_pool) else { break };
                    self.effects.pool = Some(pool);
                    if self.pools[pool].has_changes_to_log() {
                        self.log_changes(pool);
                    }
                    pool
                }
            };
            while let Some(effect) = self.pools[pool].pool.poll_effect() {
                self.effects.is_idle = false;
                if let Some(effect) = self.effect(pool, effect) {
                    return Some((pool, effect));
                }
            }
            self.effects.pool = None;
        }
        self.effects.end_of_pools();
        None
    }

    /// The next request to a connection's own program.
    fn next_pinned(&mut self, left: usize) -> Option<(PoolId, BackendEffect)> {
        let next = if left > 0 { self.effects.pinned.pop_front() } else { None };
        let Some((pool, worker, waiting)) = next else {
            self.effects.step = Step::Replaced(self.effects.to_replace.len());
            return None;
        };
        self.effects.step = Step::Pinned(left - 1);
        self.effects.is_idle = false;
        let is_own = self.is_own(pool, worker, waiting.id);
        let dispatch = is_own.then(|| self.dispatch(pool, worker, waiting, true));
        dispatch.flatten().map(|effect| (pool, effect))
    }

    /// The command for a decision of a pool.
    #[inline]
    fn effect(&mut self, pool: PoolId, effect: Effect<QueuedRequest>) -> Option<BackendEffect> {
        self.pools[pool].dirty = true;
        match effect {
            Effect::Dispatch { worker, payload, last } => {
                return self.dispatch(pool, worker, payload, last);
            }
            Effect::Refuse { payload, cause } => {
                self.refuse(payload.id, pool, Refused { payload, cause });
            }
            Effect::ToOwner { index } => self.mail_token(pool, index),
            Effect::Start { worker } => return Some(BackendEffect::Start { worker }),
            Effect::Stop { worker } => return Some(BackendEffect::Stop { worker }),
        }
        None
    }

    /// Sends a request to a worker, unless it was abandoned. `last`: the last one of its batch.
    #[inline]
    fn dispatch(
        &mut self,
        pool: PoolId,
        worker: WorkerId,
        payload: QueuedRequest,
        last: bool,
    ) -> Option<BackendEffect> {
        let QueuedRequest { id, peer, at_us, payload, meta } = payload;
        let served = &mut self.pools[pool];
        let mut heard = None;
        match self.exchanges.get_mut(id) {
            Some(exchange) => {
                exchange.step(Move::Dispatch(worker), self.now);
                served.tallies.count_request(worker);
                let since = exchange.stamps.admitted.unwrap_or(self.now);
                served.counts.count_queued(since, self.now);
                if let Some(bound) = served.bind(worker, exchange) {
                    heard = Some(bound.heard);
                    if bound.heard && bound.is_new {
                        // Further requests of the session waited for this one, and the program may be waiting for them.
                        let client = exchange.client.streamed();
                        self.finished
                            .extend(client.map(|client| (client, ReplyEvent::BodyWanted(true))));
                    }
                }
            }
            // It was abandoned in this turn after the decision of its pool, and is not sent.
            // In a batch it is processed without a client.
            None if !served.traits.takes_batches => {
                self.handle_event(pool, BackendEvent::Released { worker });
                return None;
            }
            None => {}
        }
        served.counts.batches += u64::from(last);
        if active(Mutant::EarlyOk) {
            self.end(id, Outcome::Reply(exchange::Slice::from("ok")));
        }
        let request = Request { id, peer, at_us, payload };
        Some(BackendEffect::Dispatch { worker, request, meta, more_follow: !last, heard })
    }

    /// Records that a worker failed a request, which may be retried on another worker.
    pub(super) fn note_failed(
        &mut self,
        pool: PoolId,
        id: RequestId,
        failed: Option<(WorkerId, Cause)>,
    ) {
        let (Some((worker, why)), Some(exchange)) = (failed, self.exchanges.get_mut(id)) else {
            return;
        };
        exchange.attempt.failed.add(worker.into(), why);
        let status = std::mem::take(&mut exchange.attempt.status);
        // A response counts by its status.
        let good = status != 0 && !exchange.attempt.is_bad;
        exchange.attempt.is_bad = false;
        let served = &mut self.pools[pool];
        served.tallies.count_retry(worker, status, why, self.now);
        // A retry on another worker does not count as a success of this one.
        if served.balance.judges {
            self.record_worker_outcome(pool, worker, good, Duration::ZERO);
        }
    }

    /// Returns requests that were not delivered to the head of their queue, the youngest first. `true`: there were any.
    fn give_back(&mut self) -> bool {
        if self.effects.returned.is_empty() {
            return false;
        }
        let (mut unowned, mut homeward) = (Vec::new(), Vec::new());
        for (pool, id, payload, meta) in self.effects.returned.drain(..).rev() {
            let Some(exchange) = self.exchanges.get_mut(id) else { continue };
            let from = match exchange.state {
                State::Working(worker) => Some(worker),
                State::Received | State::Waiting(_) | State::Away(_) => None,
            };
            let retry = exchange.attempt.failed.returned(from);
            if self.pools[pool].member_shard.is_some() {
                self.pools[pool].pool.note_returned_to_owner(self.now, id.as_u64(), retry);
                homeward.push((pool, id, payload, meta));
                continue;
            }
            if !self.pools[pool].takes_back(exchange) {
                unowned.push(id);
                continue;
            }
            let (peer, at_us) = (exchange.source.peer, exchange.at_us);
            let waiting = QueuedRequest { id, peer, at_us, payload, meta };
            let served = &mut self.pools[pool];
            let entry = waiting.entry(self.now, &served.balance.keys, exchange);
            let ticket = served.pool.handle_returned_entry(self.now, waiting, entry, retry);
            exchange.step(Move::GiveBack(ticket), self.now);
            if let Some(log_entry) = &mut exchange.log_entry {
                log_entry.retries += 1;
            }
        }
        for (pool, id, payload, meta) in homeward.into_iter().rev() {
            self.send_home(id, pool, payload, meta);
        }
        for id in unowned {
            self.end(id, lost());
        }
        self.pools.values_mut().for_each(|served| served.pool.handle_time(self.now));
        true
    }
}
