//! Requests that end before their worker has replied: abandoned, cancelled or interrupted.

use exchange::{Cause, Outcome, Phase, RequestId};

use super::Engine;
use crate::exchanges::{Exchange, State};
use crate::shard_message::ShardMessage;
use flow::rejected::Rejected;
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;

impl Engine {
    /// Cancels a request for its client. Client and worker are both notified.
    pub(crate) fn cancel(&mut self, id: RequestId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (pool, state) = (exchange.pool, exchange.state);
        if let State::Away(owner) = state {
            return self.shard_link.send(owner, ShardMessage::Cancel(id));
        }
        if let State::Waiting(ticket) = state {
            self.pools[pool].pool.handle_abandon(self.now, ticket);
        }
        self.control_worker(id, RequestControl::Abandoned);
        let text = "its client took it back";
        self.end(id, Outcome::ended(Cause::Cancelled, Phase::Work, text));
    }

    /// Ends a request whose reply is no longer needed. A queued request is removed. A worker that has it continues,
    /// and its reply is discarded.
    pub fn abandon(&mut self, id: RequestId, cause: Cause) {
        self.abandon_answered(id, cause, None, "");
    }

    /// Like [`Self::abandon`], after the client received the response `told`. `text` is for the log.
    pub(crate) fn abandon_answered(
        &mut self,
        id: RequestId,
        cause: Cause,
        told: Option<Rejected>,
        text: &str,
    ) {
        let state = self.exchanges.get_mut(id).map(|exchange| exchange.state);
        if let Some(owner) = state.and_then(State::owner) {
            self.take_out(id);
            return self.shard_link.send(owner, ShardMessage::Abandon(id, cause, told));
        }
        self.control_worker(id, RequestControl::Abandoned);
        let Some(mut exchange) = self.take_out(id) else { return };
        if let (Some(log_entry), Some(told)) = (&mut exchange.log_entry, told) {
            (log_entry.status, log_entry.reason) = (told.status, told.reason);
        }
        let phase = self.take_back(&exchange);
        self.account(id, &mut exchange, &Outcome::ended(cause, phase, text));
    }

    /// Removes a request from its queue, if it is still there, and returns its phase. A request that its pool
    /// assigned to a worker in this turn counts as being with the worker, although it was not sent.
    fn take_back(&mut self, exchange: &Exchange) -> Phase {
        let State::Waiting(ticket) = exchange.state else { return Phase::Work };
        match self.pools[exchange.pool].pool.handle_abandon(self.now, ticket) {
            Some(_) => Phase::Queue,
            None => Phase::Work,
        }
    }

    /// Ends all requests, because the daemon stops.
    pub fn end_all(&mut self) {
        for id in self.exchanges.ids() {
            let Some(mut exchange) = self.take_out(id) else { continue };
            let cause = match self.take_back(&exchange) {
                Phase::Queue => Cause::Draining,
                _ => Cause::Stopped,
            };
            let phase = if cause == Cause::Draining { Phase::Queue } else { Phase::Work };
            let outcome = Outcome::ended(cause, phase, "the daemon ends");
            exchange.stamps.done = Some(self.now);
            // The owner shard counts it.
            if exchange.state.owner().is_none() {
                self.account(id, &mut exchange, &outcome);
            }
            self.finished.push((exchange.client, ReplyEvent::End(outcome)));
        }
    }
}
