//! The state of an idle HTTP client, which is minimal. An exchange exists from the first byte of a request to the last
//! byte of its reply.

use std::sync::Arc;
use std::time::Duration;

use event::{Calls, Data};
use exchange::plant::{Plant, active};
use exchange::{Cause, Outcome, RequestId};

use super::{Ending, HttpExchange, Input, Output};
use crate::listener::HttpConfig;
use crate::session::SessionContext;
use crate::transport::Transport;
use flow::ids::SessionId;
use flow::reply_event::ReplyEvent;
use flow::reply_head::Carried;

/// The maximum number of unused exchanges. It covers the clients that are busy in one turn.
const SPARES_MAX: usize = 256;

/// Unused exchanges. Only their memory is reused: `take` initializes every field, so no data of one client can
/// reach the next one.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes move between here and the clients")]
pub struct Spares(Vec<Box<HttpExchange>>);

impl Spares {
    fn take(&mut self, client: &Http) -> Box<HttpExchange> {
        let Some(mut exchange) = self.0.pop() else { return client.begin() };
        if active(Plant::NotReset) {
            (exchange.id, exchange.number) = (client.id, client.number);
        } else {
            *exchange = HttpExchange::new(client.id, client.number);
        }
        exchange
    }

    /// Returns an exchange that is complete.
    fn give(&mut self, exchange: Box<HttpExchange>) {
        if self.0.len() < SPARES_MAX {
            self.0.push(exchange);
        }
    }
}

#[derive(Debug)]
pub(in crate::session) struct Http {
    id: SessionId,
    /// The number of its last request.
    number: u32,
    exchange: Option<Box<HttpExchange>>,
}

impl Http {
    pub(in crate::session) const fn new(id: SessionId) -> Self {
        Self { id, number: 0, exchange: None }
    }

    fn begin(&self) -> Box<HttpExchange> {
        Box::new(HttpExchange::new(self.id, self.number))
    }

    pub(in crate::session) fn handle_data(
        &mut self,
        plan: &Arc<HttpConfig>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_>,
        spares: &mut Spares,
    ) {
        let mut exchange = match self.exchange.take() {
            Some(exchange) => exchange,
            None => spares.take(self),
        };
        exchange.handle_data(plan, transport, calls, data, cx);
        self.exchange = Some(exchange);
    }

    /// Handles an event about the current request.
    pub(in crate::session) fn deliver(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.deliver(plan, transport, calls, sequence, reply_event, cx);
        }
    }

    /// Handles a complete reply: its head and its outcome.
    pub(in crate::session) fn deliver_whole(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        reply: (u64, Carried, Outcome),
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.deliver_whole(plan, transport, calls, reply, cx);
        }
    }

    pub(in crate::session) fn check(&self) {
        if let Some(exchange) = &self.exchange {
            exchange.check();
        }
    }

    /// The idle timeout of a tunnel, if there is one.
    pub(in crate::session) fn tunnel_idle(
        &self,
        plan: &HttpConfig,
        transport: &Transport,
    ) -> Option<Option<Duration>> {
        let exchange = self.exchange.as_ref();
        let tunnel = exchange.filter(|exchange| matches!(exchange.input, Input::Switched));
        tunnel.map(|exchange| exchange.tunnel_idle(plan, transport))
    }

    /// Whether a reply that is not in the output buffer waits for the client.
    pub(in crate::session) fn is_waited_for(&self, calls: &Calls<'_>) -> bool {
        let asked = self.exchange.as_ref().and_then(|exchange| exchange.asked.as_ref());
        let from = asked.and_then(|asked| asked.relayed_from);
        from.is_some_and(|from| calls.relay_waits(from))
    }

    /// The client is gone. A request with an incomplete body ends.
    pub(in crate::session) fn end_gathering(
        &mut self,
        transport: &Transport,
        cause: Cause,
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.end_gathering(transport, cause, cx);
        }
    }

    /// A head or a body was not complete in time.
    pub(in crate::session) fn handle_slow(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.handle_slow(plan, transport, calls, cx);
        }
    }

    /// Whether a request is queued or in flight, and is not a tunnel.
    pub(in crate::session) fn awaits_reply(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| {
            exchange.asked.is_some() && matches!(exchange.input, Input::Body(_) | Input::Whole)
        })
    }

    /// The client has shut down its sending direction. `true`: the session must be closed.
    pub(in crate::session) fn handle_eof(
        &mut self,
        transport: &Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) -> bool {
        if self.exchange.is_none() && transport.queued(calls) == 0 {
            return true;
        }
        let mut exchange = self.exchange.take().unwrap_or_else(|| self.begin());
        let cut_off = exchange.handle_eof(transport, calls, cx);
        let is_owed = exchange.asked.is_some();
        self.exchange = Some(exchange);
        cut_off || !is_owed && transport.queued(calls) == 0
    }

    /// Whether a further request of this connection can be served during a drain: no response has announced the end
    /// of the connection, and the one in flight will not either.
    pub(in crate::session) fn may_ask(&self) -> bool {
        let Some(exchange) = &self.exchange else { return true };
        if exchange.ending != Ending::No {
            return false;
        }
        match (&exchange.input, &exchange.asked) {
            (Input::Switched | Input::Ended, _) => false,
            (_, None) => true,
            (_, Some(asked)) => asked.output != Output::None && asked.keep,
        }
    }

    /// Ends the connection. An incomplete request is rejected.
    pub(in crate::session) fn refuse_begun(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.is_begun()) {
            exchange.refuse_draining(transport, calls, cx);
        }
    }

    pub(in crate::session) fn flush(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
        spares: &mut Spares,
    ) {
        match &mut self.exchange {
            Some(exchange) => exchange.flush(transport, calls, cx),
            None if transport.is_clogged(calls) => {}
            None => transport.resume(calls),
        }
        if let Some(exchange) = self.exchange.take_if(|exchange| exchange.is_over()) {
            self.number = exchange.number;
            spares.give(exchange);
        }
    }

    /// The size of the buffered body, in bytes.
    pub(in crate::session) fn held(&self) -> usize {
        match self.exchange.as_ref().map(|exchange| &exchange.input) {
            Some(Input::BufferedBody(buffered)) => buffered.held(),
            _ => 0,
        }
    }

    /// Whether a request has begun and is not complete.
    pub(in crate::session) fn has_begun(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| !exchange.is_over())
    }

    /// Whether a request is in progress, which uses the settings that it began with.
    pub(in crate::session) const fn is_at_work(&self) -> bool {
        self.exchange.is_some()
    }

    pub(in crate::session) fn abandoned(&self) -> Option<RequestId> {
        let exchange = self.exchange.as_ref()?;
        // A tunnel whose directions have both ended needs nothing more from its client.
        let asked = exchange.asked.as_ref();
        Some(asked.filter(|asked| !(asked.said_all && exchange.half_closed))?.request)
    }

    /// Whether the end of the connection could be mistaken for the end of a reply that is incomplete.
    pub(in crate::session) fn would_look_whole(&self, queued: usize) -> bool {
        let Some(exchange) = &self.exchange else { return false };
        match exchange.ending {
            Ending::CutOff => true,
            Ending::OpenEnded => queued > 0,
            Ending::No | Ending::Said => exchange.asked.as_ref().is_some_and(|it| it.open_ended),
        }
    }

    pub(in crate::session) fn is_owed(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.asked.is_some())
    }
}
