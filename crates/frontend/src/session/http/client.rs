//! What a client of HTTP keeps while it is idle: next to nothing. The rest is there from the first
//! byte of a request to the last of its reply.

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

/// SpareExchanges that are kept for the next who asks: of as many clients as are busy in one turn.
const SPARES_MAX: usize = 256;

/// SpareExchanges that are over. Only their memory is reused: [`Self::take`] makes each anew, so no field
/// of one client's exchange can reach the next client.
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

    /// Takes back one that is over.
    fn give(&mut self, exchange: Box<HttpExchange>) {
        if self.0.len() < SPARES_MAX {
            self.0.push(exchange);
        }
    }
}

#[derive(Debug)]
pub(in crate::session) struct Http {
    id: SessionId,
    /// Number of its last request.
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

    /// Something came of the request on its way.
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

    /// A head and, right behind it, the end of the reply.
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

    /// How long nobody may speak, where both sides speak freely.
    pub(in crate::session) fn tunnel_idle(
        &self,
        plan: &HttpConfig,
        transport: &Transport,
    ) -> Option<Option<Duration>> {
        let exchange = self.exchange.as_ref();
        let tunnel = exchange.filter(|exchange| matches!(exchange.input, Input::Switched));
        tunnel.map(|exchange| exchange.tunnel_idle(plan, transport))
    }

    /// Whether a reply waits for the client that is not in its output.
    pub(in crate::session) fn is_waited_for(&self, calls: &Calls<'_>) -> bool {
        let asked = self.exchange.as_ref().and_then(|exchange| exchange.asked.as_ref());
        let from = asked.and_then(|asked| asked.relayed_from);
        from.is_some_and(|from| calls.relay_waits(from))
    }

    /// The client is gone. A request whose body was still coming has ended with it.
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

    /// A head or a body did not come in time.
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

    /// Whether a request is with a worker, or waits for one, and no tunnel was made.
    pub(in crate::session) fn awaits_reply(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| {
            exchange.asked.is_some() && matches!(exchange.input, Input::Body(_) | Input::Whole)
        })
    }

    /// The client sends no more. True when nothing is to be said to it any more.
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

    /// Whether a further request of this connection can be served during a drain: no response has
    /// announced the end of the connection yet, and the one in flight will not do so either.
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

    /// The connection ends: of what was begun and is not whole the client is told so.
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

    /// Bytes of a body that is taken whole before its request goes on.
    pub(in crate::session) fn held(&self) -> usize {
        match self.exchange.as_ref().map(|exchange| &exchange.input) {
            Some(Input::BufferedBody(buffered)) => buffered.held(),
            _ => 0,
        }
    }

    /// Whether anything of a request has come that is not over.
    pub(in crate::session) fn has_begun(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| !exchange.is_over())
    }

    /// Whether a request is on its way, or half read: it goes on as it was begun.
    pub(in crate::session) const fn is_at_work(&self) -> bool {
        self.exchange.is_some()
    }

    pub(in crate::session) fn abandoned(&self) -> Option<RequestId> {
        let exchange = self.exchange.as_ref()?;
        // A tunnel of which both directions have ended comes to its end without its client.
        let asked = exchange.asked.as_ref();
        Some(asked.filter(|asked| !(asked.said_all && exchange.half_closed))?.request)
    }

    /// Whether the connection's end, if it came now, would be taken for the end of a reply of which not
    /// all was sent.
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
