//! What the pools decided is carried out: once a turn, after all that the turn brought was taken in.

use std::time::Duration;

use event::Calls;
use exchange::plant::{Plant, active};
use exchange::{Cause, Outcome, PoolId, RequestId, Slice, WorkerId};
use pool::{Effect, Refused};

use super::outcomes::lost;
use super::{Core, Waiting};
use crate::exchanges::{Delivery, Move, State};
use crate::outside::Outside;
use crate::payload::Request;
use crate::upward::Upward;

impl Core {
    /// Carries out what the pools want, until none wants anything more.
    pub(crate) fn pump(&mut self, calls: &mut Calls<'_>, outside: &mut Outside) {
        self.run_checks(calls, outside);
        loop {
            let mut idle = true;
            let mut next = 0;
            while let Some(pool) = self.pools.next_id(&mut next) {
                self.log_changes(pool);
                while let Some(effect) = self.pools[pool].pool.poll_effect() {
                    idle = false;
                    self.carry_out(calls, outside, pool, effect);
                }
            }
            // Those that come meanwhile have their turn in the next round.
            for _ in 0..self.direct.len() {
                let Some((pool, worker, waiting)) = self.direct.pop_front() else { break };
                idle = false;
                if self.is_own(pool, worker, waiting.id) {
                    self.dispatch(calls, outside, pool, worker, waiting, true);
                }
            }
            for _ in 0..self.used_up.len() {
                let Some((pool, worker)) = self.used_up.pop_front() else { break };
                idle = false;
                self.with_workers(pool, |workers, up| workers.retire(calls, worker, outside, up));
            }
            while let Some((pool, worker, hush)) = self.hushed.pop_front() {
                self.with_workers(pool, |workers, _| workers.hush(calls, worker, hush));
            }
            while let Some((pool, worker)) = self.spare.pop_front() {
                self.with_workers(pool, |workers, _| workers.spare(calls, worker));
            }
            for _ in 0..self.told.len() {
                let Some((pool, worker, id, word)) = self.told.pop_front() else { break };
                idle = false;
                self.with_workers(pool, |workers, up| {
                    workers.tell(calls, worker, id, word, outside, up);
                });
            }
            if !self.returned.is_empty() {
                self.give_back();
            } else if idle {
                return;
            }
        }
    }

    fn carry_out(
        &mut self,
        calls: &mut Calls<'_>,
        outside: &mut Outside,
        pool: PoolId,
        effect: Effect<Waiting>,
    ) {
        self.pools[pool].dirty = true;
        match effect {
            Effect::Dispatch { worker, payload, last } => {
                self.dispatch(calls, outside, pool, worker, payload, last);
            }
            Effect::Refuse { payload, cause } => {
                self.refuse(payload.id, pool, Refused { payload, cause });
            }
            Effect::Home { index } => self.mail_token(pool, index),
            Effect::Start { worker } => {
                self.with_workers(pool, |workers, up| {
                    workers.start(calls, worker, outside, up);
                });
            }
            Effect::Stop { worker } => {
                self.with_workers(pool, |workers, up| workers.stop(calls, worker, outside, up));
            }
        }
    }

    fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        outside: &mut Outside,
        pool: PoolId,
        worker: WorkerId,
        payload: Waiting,
        last: bool,
    ) {
        let Waiting { id, peer, at_us, payload, form } = payload;
        let served = &mut self.pools[pool];
        match self.exchanges.get_mut(id) {
            Some(exchange) => {
                exchange.step(Move::Dispatch(worker), self.now);
                served.tallies.count_request(worker);
                let since = exchange.stamps.admitted.unwrap_or(self.now);
                served.counts.count_queued(since, self.now);
                if served.bind(worker, exchange) {
                    // What else it asked waited for this, and its program may wait for that.
                    let client = exchange.client.streamed();
                    self.finished.extend(client.map(|client| (client, Delivery::Flow(true))));
                }
            }
            // It was abandoned in this very turn, after its pool had decided: nobody is given it.
            // In a batch it is done for nobody.
            None if !served.workers.take_batches() => {
                return self.handle_upward(pool, Upward::Released { worker });
            }
            None => {}
        }
        served.counts.batches += u64::from(last);
        let request = Request { id, peer, at_us, payload };
        // With others of its batch behind it, it has only to be added to them.
        let alone = if last { Some(request) } else { served.workers.add(worker, request) };
        if let Some(request) = alone {
            self.with_workers(pool, |workers, up| {
                workers.dispatch(calls, worker, (request, form), outside, up);
            });
        }
        if active(Plant::EarlyOk) {
            self.end(id, Outcome::Reply(Slice::from("ok")));
        }
    }

    /// A worker has failed a request, which may be given to another.
    pub(super) fn note_failed(
        &mut self,
        pool: PoolId,
        id: RequestId,
        failed: Option<(WorkerId, Cause)>,
    ) {
        let (Some((worker, why)), Some(exchange)) = (failed, self.exchanges.get_mut(id)) else {
            return;
        };
        exchange.failed.add(worker.into(), why);
        let status = std::mem::take(&mut exchange.status);
        // A response counts by its status.
        let good = status != 0 && !exchange.is_bad;
        exchange.is_bad = false;
        let served = &mut self.pools[pool];
        served.tallies.count_retry(worker, status, why, self.now);
        // That the request goes on to another worker does not speak for this one.
        if served.balance.judges {
            self.judge_worker(pool, worker, good, Duration::ZERO);
        }
    }

    /// Requests that never reached their worker go back to the head of their queue, the youngest
    /// first.
    fn give_back(&mut self) {
        let (mut unowned, mut homeward) = (Vec::new(), Vec::new());
        for (pool, id, payload, form) in self.returned.drain(..).rev() {
            let Some(exchange) = self.exchanges.get_mut(id) else { continue };
            let from = match exchange.state {
                State::Working(worker) => Some(worker),
                State::Received | State::Waiting(_) | State::Away(_) => None,
            };
            let retry = exchange.failed.returned(from);
            if self.pools[pool].branch.is_some() {
                self.pools[pool].pool.note_homeward(self.now, id.as_u64(), retry);
                homeward.push((pool, id, payload, form));
                continue;
            }
            if !self.pools[pool].takes_back(exchange) {
                unowned.push(id);
                continue;
            }
            let (peer, at_us) = (exchange.peer, exchange.at_us);
            let waiting = Waiting { id, peer, at_us, payload, form };
            let served = &mut self.pools[pool];
            let entry = waiting.entry(self.now, &served.balance.wishes, exchange);
            let ticket = served.pool.handle_returned_entry(self.now, waiting, entry, retry);
            exchange.step(Move::GiveBack(ticket), self.now);
            if let Some(trail) = &mut exchange.trail {
                trail.retries += 1;
            }
        }
        for (pool, id, payload, form) in homeward.into_iter().rev() {
            self.send_home(id, pool, payload, form);
        }
        for id in unowned {
            self.end(id, lost());
        }
        self.pools.values_mut().for_each(|served| served.pool.handle_time(self.now));
    }
}
