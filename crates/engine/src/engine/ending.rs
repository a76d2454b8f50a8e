//! Requests that end before their worker has answered: given up, taken back, cut.

use exchange::{Cause, Outcome, Phase, PoolId, RequestId};

use super::Engine;
use crate::exchanges::{Exchange, State};
use crate::shard_message::ShardMessage;
use flow::rejected::Rejected;
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;

impl Engine {
    /// Whether it has not ended.
    pub fn is_under_way(&mut self, id: RequestId) -> bool {
        self.exchanges.get_mut(id).is_some()
    }

    /// A client takes back what is no request of its own in flight.
    pub fn count_stray(&mut self, pool: PoolId) {
        self.pools[pool].counts.strays += 1;
    }

    /// Its client takes this request back. It is told the end, and the worker as well.
    pub fn cancel(&mut self, id: RequestId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (pool, state) = (exchange.pool, exchange.state);
        if let State::Away(home) = state {
            return self.shard_link.tell(home, ShardMessage::Cancel(id));
        }
        if let State::Waiting(ticket) = state {
            self.pools[pool].pool.handle_abandon(self.now, ticket);
        }
        self.tell(id, RequestControl::Abandoned);
        let text = "its client took it back";
        self.end(id, Outcome::ended(Cause::Cancelled, Phase::Work, text));
    }

    /// Nobody wants this answer any more. What waits is taken out of its queue; a worker that has
    /// it goes on, and its answer will find nobody.
    pub fn abandon(&mut self, id: RequestId, cause: Cause) {
        self.abandon_told(id, cause, None, "");
    }

    /// As [`Self::abandon`]. `text` is for the log.
    pub fn abandon_told(
        &mut self,
        id: RequestId,
        cause: Cause,
        told: Option<Rejected>,
        text: &str,
    ) {
        let state = self.exchanges.get_mut(id).map(|exchange| exchange.state);
        if let Some(home) = state.and_then(State::home) {
            self.take_out(id);
            return self.shard_link.tell(home, ShardMessage::Abandon(id, cause, told));
        }
        self.tell(id, RequestControl::Abandoned);
        let Some(mut exchange) = self.take_out(id) else { return };
        if let (Some(log_entry), Some(told)) = (&mut exchange.log_entry, told) {
            (log_entry.status, log_entry.reason) = (told.status, told.reason);
        }
        let phase = self.take_back(&exchange);
        self.account(id, &mut exchange, &Outcome::ended(cause, phase, text));
    }

    /// Takes a request out of its queue, if it is still there, and says how far it had come. One
    /// that its pool has given to a worker in this turn is with the worker, though it was not sent.
    fn take_back(&mut self, exchange: &Exchange) -> Phase {
        let State::Waiting(ticket) = exchange.state else { return Phase::Work };
        match self.pools[exchange.pool].pool.handle_abandon(self.now, ticket) {
            Some(_) => Phase::Queue,
            None => Phase::Work,
        }
    }

    /// Ends everything that is on its way, because the daemon ends.
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
            // Its home counts it.
            if exchange.state.home().is_none() {
                self.account(id, &mut exchange, &outcome);
            }
            self.finished.push((exchange.client, ReplyEvent::End(outcome)));
        }
    }
}
