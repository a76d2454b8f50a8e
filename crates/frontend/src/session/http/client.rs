//! The state of an idle HTTP client, which is minimal. An exchange exists from the first byte of a request to the last
//! byte of its reply.

use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data};
use exchange::mutant::{Mutant, active};
use exchange::{Cause, Outcome, RequestId};

use super::{Ending, HttpExchange, Input, Output};
use crate::connection::ConnectionConfig;
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::protocol::{Protocol, ProtocolConfig, Received, RefusalTime};
use crate::transport::Transport;
use flow::ids::SessionId;
use flow::reply_event::ReplyEvent;
use flow::reply_head::BoxedReplyHead;

/// The maximum number of unused exchanges: some 0.5 MB. It covers the clients that are busy in one turn.
const SPARES_MAX: usize = 1024;

/// Unused exchanges. Only their memory is reused: `take` initializes every field, so no data of one client can
/// reach the next one.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes move between here and the clients")]
pub(super) struct Spares(Vec<Box<HttpExchange>>);

impl Spares {
    fn take(&mut self, client: &Http) -> Box<HttpExchange> {
        let Some(mut exchange) = self.0.pop() else { return client.begin() };
        if active(Mutant::NotReset) {
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

/// One client of HTTP.
#[derive(Debug)]
pub(super) struct Http {
    config: Arc<HttpConfig>,
    id: SessionId,
    /// The number of its last request.
    number: u32,
    exchange: Option<Box<HttpExchange>>,
}

impl Http {
    pub(super) const fn new(id: SessionId, config: Arc<HttpConfig>) -> Self {
        Self { config, id, number: 0, exchange: None }
    }

    fn begin(&self) -> Box<HttpExchange> {
        Box::new(HttpExchange::new(self.id, self.number))
    }

    /// Whether a request is queued or in flight, and is not a tunnel.
    fn awaits_reply(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| {
            exchange.asked.is_some() && matches!(exchange.input, Input::Body(_) | Input::Whole)
        })
    }
}

impl ProtocolConfig for HttpConfig {
    fn open(
        self: Arc<Self>,
        id: SessionId,
        _transport: &mut Transport,
        _cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol> {
        Box::new(Http::new(id, self))
    }

    /// Each refusal is the response to a request.
    fn write_refusal(&self, _outcome: &Outcome, _out: &mut Vec<u8>) {}

    fn refusal_time(&self) -> RefusalTime {
        RefusalTime::AfterRequest(self.read)
    }

    fn refuse_request(
        &self,
        connection: &ConnectionConfig,
        request: (&[u8], bool),
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        self.refuse_first(connection, request, outcome, cx)
    }
}

impl Protocol for Http {
    fn handle_data(
        &mut self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> Received {
        let mut exchange = match self.exchange.take() {
            Some(exchange) => exchange,
            None => cx.scratch.own::<Spares>().take(self),
        };
        exchange.handle_data(&self.config, transport, data, cx);
        // An empty line does not begin a request.
        let begun = !exchange.is_over();
        self.exchange = Some(exchange);
        Received::of(begun)
    }

    /// Handles an event about the current request.
    fn deliver(
        &mut self,
        transport: &mut Transport,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.deliver(&self.config, transport, sequence, reply_event, cx);
        }
    }

    /// Handles a complete reply: its head and its outcome.
    fn deliver_whole(
        &mut self,
        transport: &mut Transport,
        reply: (u64, BoxedReplyHead, Outcome),
        cx: &mut SessionContext<'_, '_>,
    ) {
        if let Some(exchange) = &mut self.exchange {
            exchange.deliver_whole(&self.config, transport, reply, cx);
        }
    }

    fn check(&self) {
        if let Some(exchange) = &self.exchange {
            exchange.check();
        }
    }

    /// The idle timeout of a tunnel, if there is one.
    fn tunnel_idle(&self, transport: &Transport) -> Option<Option<Duration>> {
        let exchange = self.exchange.as_ref();
        let tunnel = exchange.filter(|exchange| matches!(exchange.input, Input::Switched));
        tunnel.map(|exchange| exchange.tunnel_idle(&self.config, transport))
    }

    /// Whether a reply that is not in the output buffer waits for the client.
    fn is_waited_for(&self, io: &Context<'_>) -> bool {
        let asked = self.exchange.as_ref().and_then(|exchange| exchange.asked.as_ref());
        let from = asked.and_then(|asked| asked.relayed_from);
        from.is_some_and(|from| io.relay_waits(from))
    }

    /// A request with an incomplete body ends.
    fn end(&mut self, transport: &Transport, cause: Cause, cx: &mut SessionContext<'_, '_>) {
        if let Some(exchange) = &mut self.exchange {
            exchange.end_gathering(transport, cause, cx);
        }
    }

    /// A head or a body was not complete in time.
    fn handle_slow(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if let Some(exchange) = &mut self.exchange {
            exchange.handle_slow(&self.config, transport, cx);
        }
    }

    /// The client has shut down its sending direction. `true`: the session must be closed.
    fn handle_eof(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        if self.exchange.is_none() && transport.queued(cx.io) == 0 {
            return true;
        }
        let mut exchange = self.exchange.take().unwrap_or_else(|| self.begin());
        let cut_off = exchange.handle_eof(transport, cx);
        let is_owed = exchange.asked.is_some();
        self.exchange = Some(exchange);
        cut_off || !is_owed && transport.queued(cx.io) == 0
    }

    fn handle_end_ahead(
        &mut self,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        if !self.awaits_reply() || transport.listener().keeps_half_closed {
            return false;
        }
        let has_left = self.handle_eof(transport, cx);
        // Earlier bytes are discarded, up to the end.
        transport.resume(cx.io);
        has_left
    }

    /// HTTP requests are useless without their reply.
    fn handle_hangup(&mut self, _transport: &Transport) -> bool {
        true
    }

    fn handle_listener(
        &mut self,
        transport: &mut Transport,
        connection: &Arc<ConnectionConfig>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.take_over(transport, cx.io, connection);
    }

    /// A request in progress keeps the settings that it began with.
    fn take_over(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        connection: &Arc<ConnectionConfig>,
    ) {
        if self.is_at_work() || transport.queued(io) > 0 {
            return;
        }
        if let Ok(config) = Arc::clone(&connection.protocol).downcast() {
            self.config = config;
            transport.handle_listener(io, Arc::clone(connection));
        }
    }

    /// The connection is served until it has received a response with `Connection: close`, or was idle for
    /// `drain_keepalive_timeout`.
    fn begin_drain(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        transport.look_in(cx.io, Duration::ZERO);
    }

    /// Whether a further request of this connection can be served during a drain: no response has announced the end
    /// of the connection, and the one in flight will not either.
    fn may_ask(&self) -> bool {
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

    /// Replies were written when they arrived. An incomplete request is rejected.
    fn flush_all(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.is_begun()) {
            exchange.refuse_draining(transport, cx);
        }
        self.would_look_whole(0)
    }

    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        match &mut self.exchange {
            Some(exchange) => exchange.flush(transport, cx),
            None if transport.over_high_water(cx.io) => {}
            None => transport.resume(cx.io),
        }
        if let Some(exchange) = self.exchange.take_if(|exchange| exchange.is_over()) {
            self.number = exchange.number;
            cx.scratch.own::<Spares>().give(exchange);
        }
    }

    /// The size of the buffered body, in bytes.
    fn held(&self) -> usize {
        match self.exchange.as_ref().map(|exchange| &exchange.input) {
            Some(Input::BufferedBody(buffered)) => buffered.held(),
            _ => 0,
        }
    }

    /// Whether a request has begun and is not complete.
    fn has_begun(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| !exchange.is_over())
    }

    /// Whether a request is in progress, which uses the settings that it began with.
    fn is_at_work(&self) -> bool {
        self.exchange.is_some()
    }

    fn each_abandoned(&self, each: &mut dyn FnMut(RequestId)) {
        let Some(exchange) = &self.exchange else { return };
        // A tunnel whose directions have both ended needs nothing more from its client.
        let asked = exchange.asked.as_ref();
        let asked = asked.filter(|asked| !(asked.said_all && exchange.half_closed));
        asked.into_iter().for_each(|asked| each(asked.request));
    }

    /// Whether the end of the connection could be mistaken for the end of a reply that is incomplete.
    fn would_look_whole(&self, queued: usize) -> bool {
        let Some(exchange) = &self.exchange else { return false };
        match exchange.ending {
            Ending::CutOff => true,
            Ending::OpenEnded => queued > 0,
            Ending::No | Ending::LocalReply => {
                exchange.asked.as_ref().is_some_and(|it| it.open_ended)
            }
        }
    }

    fn is_owed(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.asked.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    /// The memory of an idle connection, beside its stream (`event`: 104 bytes and its generation) and one alarm
    /// of 40 bytes: its session, and the protocol object that the session owns.
    #[test]
    fn an_idle_client_owns_little() {
        let (session, http) = (size_of::<Session>(), size_of::<Http>());
        assert!(session + http <= 112, "a session: {session} bytes, and {http} of HTTP");
    }
}
