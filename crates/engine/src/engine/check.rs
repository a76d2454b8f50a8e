//! Health checks in the engine: results go to the pool, and checks of programs are requests.

use exchange::{Cause, Peer, PoolId, Slice, WorkerId};

use super::{Engine, QueuedRequest};
use crate::exchanges::Move;
use flow::client::{Client, Source};
use flow::payload::Payload;
use flow::request_meta::RequestMeta;

impl Engine {
    /// Whether a worker is serving and idle.
    pub fn is_free(&self, pool: PoolId, worker: WorkerId) -> bool {
        let idle = |view: pool::WorkerView<'_>| view.worker == Some(worker) && view.in_use == 0;
        self.pools[pool].pool.workers().any(idle)
    }

    /// Sends a health check request to this worker without queueing. A worker that is down or not checked yet receives
    /// nothing else.
    pub fn probe(&mut self, pool: PoolId, worker: WorkerId, client: Client, body: &str) {
        let id = self.insert(client, Source::INSIDE, (pool, None), None);
        let at_us = self.at_us();
        let payload = Payload::Frame(Slice::from(body).compact());
        let waiting =
            QueuedRequest { id, peer: Peer::Inside, at_us, payload, meta: RequestMeta::default() };
        let exchange = self.exchanges.get_mut(id).expect("it was put in above");
        let served = &mut self.pools[pool];
        served.dirty = true;
        served.counts.requests += 1;
        let entry = waiting.entry(self.now, &served.balance.keys, exchange);
        match served.pool.handle_probe(self.now, worker, waiting, entry) {
            Ok(ticket) => exchange.step(Move::Admit(ticket), self.now),
            Err(_) => self.end(id, super::refusal(Cause::Full, &self.pools[pool].name)),
        }
    }

    /// Records the result of a health check.
    pub(super) fn checked(&mut self, pool: PoolId, worker: WorkerId, good: bool, text: String) {
        let served = &mut self.pools[pool];
        served.tallies.note_check(worker, text, self.now);
        served.pool.handle_check(self.now, worker, good);
        self.log_changes(pool);
    }
}
