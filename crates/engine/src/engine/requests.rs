//! Implementation of the interface for frontends.

use std::time::{Duration, Instant};

use exchange::{Cause, Outcome, Peer, PoolId, RequestId};

use super::Engine;
use crate::session_affinity::SessionTarget;
use flow::client::{Client, Source};
use flow::ids::SessionId;
use flow::payload::Payload;
use flow::permit::Permit;
use flow::rejected::Rejected;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::request_shape::RequestShape;
use flow::requests::Requests;
use observe::access_log::{AccessEntry, AccessLog};
use observe::calendar::DateLine;
use observe::metrics::Rejects;

impl Requests for Engine {
    fn now(&self) -> Instant {
        self.now
    }

    fn date_line(&mut self) -> DateLine {
        self.calendar.date_line(self.now)
    }

    fn access_log(&mut self) -> &mut AccessLog {
        &mut self.access_log
    }

    fn rejects(&mut self) -> &mut Rejects {
        &mut self.rejects
    }

    fn drain_keepalive_timeout(&self) -> Option<Duration> {
        self.drain_keepalive_timeout
    }

    fn shape(&self, pool: PoolId) -> RequestShape {
        self.pools[pool].takes.clone()
    }

    /// Whether the replies of a pool are lines. With `then`, the last pool of the chain decides.
    fn replies_lines(&self, pool: PoolId) -> bool {
        let served = &self.pools[pool];
        match (served.then, &served.takes) {
            (Some(then), _) => self.replies_lines(then),
            (None, RequestShape::Records(question)) => question.lines,
            (None, _) => false,
        }
    }

    /// Whether requests to the programs of a pool carry ids that the daemon assigns.
    fn is_tagged(&self, pool: PoolId) -> bool {
        self.pools[pool].is_tagged
    }

    /// Whether each program of a pool serves one connection only.
    fn has_owners(&self, pool: PoolId) -> bool {
        self.pools[pool].own.is_some()
    }

    fn may_send(
        &mut self,
        from: (PoolId, SessionId, bool),
        permit: &mut Permit,
        bytes: usize,
    ) -> bool {
        self.may_send(from, permit, bytes)
    }

    /// Whether a session with outstanding replies may submit more requests: only when its own program is known. If
    /// another shard owns the pool, the program is known once it has `answered` a request.
    fn may_ask_more(&self, pool: PoolId, session: SessionId, answered: bool) -> bool {
        let Some(own) = &self.pools[pool].own else { return true };
        match self.shard_link.off_shard(pool) {
            Some(_) => answered,
            None => own.affinity.way(session) != SessionTarget::Pool,
        }
    }

    fn spend_permit(&mut self, pool: PoolId, permit: &mut Permit) {
        self.spend_permit(pool, permit);
    }

    fn park(&mut self, pool: PoolId, permit: &mut Permit) {
        self.park(pool, permit);
    }

    fn wait_again(&mut self, pool: PoolId, session: SessionId, permit: &mut Permit) {
        self.wait_again(pool, session, permit);
    }

    fn stop_waiting(&mut self, pool: PoolId, permit: &mut Permit) {
        self.stop_waiting(pool, permit);
    }

    fn submit(
        &mut self,
        client: Client,
        source: Source,
        request: (Payload, RequestMeta),
        pool: PoolId,
        entry: Option<Box<AccessEntry>>,
    ) -> RequestId {
        self.submit(client, source, request, pool, entry)
    }

    fn control(&mut self, id: RequestId, control: RequestControl) {
        if let RequestControl::Body(_, data) = &control
            && let Some(log_entry) = self.exchanges.get_mut(id).and_then(|it| it.log_entry.as_mut())
        {
            log_entry.bytes_in += *data as u64;
        }
        self.control_worker(id, control);
    }

    /// Whether a request has not ended.
    fn is_under_way(&mut self, id: RequestId) -> bool {
        self.exchanges.get_mut(id).is_some()
    }

    fn cancel(&mut self, id: RequestId) {
        self.cancel(id);
    }

    fn abandon(&mut self, id: RequestId, cause: Cause) {
        self.abandon(id, cause);
    }

    fn abandon_answered(
        &mut self,
        id: RequestId,
        cause: Cause,
        told: Option<Rejected>,
        text: &str,
    ) {
        self.abandon_answered(id, cause, told, text);
    }

    fn refused_at_receipt(
        &mut self,
        pool: PoolId,
        source: Source,
        outcome: &Outcome,
        entry: Option<Box<AccessEntry>>,
    ) {
        self.refused_at_receipt(pool, source, outcome, entry);
    }

    /// Logs that a reply was not delivered, because it exceeded the limit of its client.
    fn note_undelivered(&mut self, pool: PoolId, peer: Peer, outcome: &Outcome) {
        let served = &mut self.pools[pool];
        served.dirty = true;
        served.counts.undelivered += 1;
        if let Outcome::Ended(end, _) = outcome {
            let (text, _) = outcome.text();
            served.error_log.end(&served.name, RequestId::NONE, peer, *end, text, self.now);
        }
    }

    /// Counts a notification that names no request of its client in flight.
    fn count_stray(&mut self, pool: PoolId) {
        self.pools[pool].counts.strays += 1;
    }

    fn pause_program(&mut self, pool: PoolId, session: SessionId, hush: bool) {
        self.pause_program(pool, session, hush);
    }
}
