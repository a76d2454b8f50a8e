//! A client whose connection is its request, as in the Daytime and Time protocols: it receives one reply, and the
//! connection is closed.
//!
//! Bytes that it sends are discarded.

use std::collections::VecDeque;
use std::sync::Arc;

use event::{Context, Data};
use exchange::{Cause, Outcome, Phase, PoolId, RequestId, Slice};
use wire::{ErrorId, Framing, Marks, write_reply};

use crate::context::SessionContext;
use crate::listener::{ConnectConfig, DatagramConfig};
use crate::protocol::{Protocol, ProtocolConfig, Received};
use crate::transport::Transport;
use flow::client::Client;
use flow::ids::SessionId;
use flow::reply_event::ReplyEvent;
use flow::request_meta::RequestMeta;

#[derive(Debug)]
struct Connect {
    pool: PoolId,
    /// The request, until its reply is complete.
    request: Option<RequestId>,
    /// Parts that are not sent yet.
    parts: VecDeque<Slice>,
    /// Their size in bytes.
    held: usize,
    /// Bytes of the reply that have arrived.
    came: usize,
    /// The outcome, until it is sent.
    outcome: Option<Outcome>,
    /// The worker is paused.
    holding: bool,
}

impl ProtocolConfig for ConnectConfig {
    fn open(
        self: Arc<Self>,
        id: SessionId,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol> {
        Box::new(Connect::open(id, transport, cx))
    }

    fn write_refusal(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        write_refusal(outcome, out);
    }
}

impl ProtocolConfig for DatagramConfig {
    /// Not called: there are no sessions of datagrams.
    fn open(
        self: Arc<Self>,
        id: SessionId,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol> {
        Box::new(Connect::open(id, transport, cx))
    }

    fn write_refusal(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        write_refusal(outcome, out);
    }

    fn is_datagrams(&self) -> bool {
        true
    }
}

/// Writes the rejection of a connection as a line.
fn write_refusal(outcome: &Outcome, out: &mut Vec<u8>) {
    let refused = write_reply(Framing::Raw, Marks::Plain, outcome, ErrorId::Unknown, out);
    debug_assert!(refused.is_ok(), "an ending can always be carried");
}

impl Connect {
    /// Submits the request. Its body is the address of the client.
    fn open(id: SessionId, transport: &Transport, cx: &mut SessionContext<'_, '_>) -> Self {
        let listener = transport.listener();
        cx.entry = cx.requests.access_log().begin(listener.logged.as_ref());
        let (pool, source) = (listener.pool, transport.source());
        let quiet = Self {
            pool,
            request: None,
            parts: VecDeque::new(),
            held: 0,
            came: 0,
            outcome: None,
            holding: false,
        };
        if let Err(outcome) = cx.address_limits.request(cx.requests.now(), transport.entry()) {
            cx.requests.refused_at_receipt(pool, source, &outcome, cx.entry.take());
            return Self { outcome: Some(outcome), ..quiet };
        }
        let client = Client::Session { session: id, sequence: 0 };
        let body = Slice::from(source.peer.to_string().as_str());
        let request = Some(cx.requests.submit(
            client,
            source,
            (body.into(), RequestMeta::default()),
            pool,
            cx.entry.take(),
        ));
        Self { request, ..quiet }
    }

    fn push(&mut self, part: Slice) {
        self.held += part.len();
        self.came = self.came.saturating_add(part.len());
        self.parts.push_back(part);
    }

    fn write_below(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        scratch: &mut Vec<u8>,
        high: usize,
    ) {
        while transport.queued(io) <= high {
            let Some(part) = self.parts.pop_front() else { break };
            self.held -= part.len();
            transport.send(io, part);
        }
        if self.parts.is_empty()
            && let Some(outcome) = self.outcome.take()
            && matches!(outcome, Outcome::Ended(..))
        {
            scratch.clear();
            write_refusal(&outcome, scratch);
            transport.send_bytes(io, scratch);
        }
    }
}

impl Protocol for Connect {
    /// Input is discarded.
    fn handle_data(
        &mut self,
        _transport: &mut Transport,
        data: &mut Data<'_>,
        _cx: &mut SessionContext<'_, '_>,
    ) -> Received {
        data.consume(data.bytes().len());
        Received::Discarded
    }

    fn deliver(
        &mut self,
        transport: &mut Transport,
        _sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let send_max = transport.listener().limits.send_max;
        let length = match &reply_event {
            ReplyEvent::Part(part) | ReplyEvent::End(Outcome::Reply(part)) => part.len(),
            ReplyEvent::End(Outcome::Fallback(_, body)) => body.len(),
            ReplyEvent::End(Outcome::Ended(..)) => 0,
            // These occur with message protocols only.
            ReplyEvent::Head(_)
            | ReplyEvent::Page(_)
            | ReplyEvent::PlainReply(_)
            | ReplyEvent::BodyWanted(_)
            | ReplyEvent::ReplyEnd
            | ReplyEvent::SpliceOffer(_)
            | ReplyEvent::Spliced(..)
            | ReplyEvent::Unsolicited(..)
            | ReplyEvent::Finished => return,
        };
        if self.request.is_none() {
            return;
        }
        if self.held + length > send_max {
            let text = format!("a client's output holds at most {send_max} bytes");
            let outcome = Outcome::ended(Cause::Reply, Phase::Reply, &text);
            cx.requests.note_undelivered(self.pool, transport.peer(), &outcome);
            let request = self.request.take();
            if let (ReplyEvent::Part(_), Some(request)) = (reply_event, request) {
                cx.requests.abandon(request, Cause::Reply);
            }
            self.outcome = Some(outcome);
            return;
        }
        match reply_event {
            ReplyEvent::Part(part) => self.push(part),
            ReplyEvent::End(outcome) => {
                self.request = None;
                self.outcome = Some(match outcome {
                    Outcome::Reply(body) | Outcome::Fallback(_, body) => {
                        self.push(body);
                        Outcome::Reply(Slice::default())
                    }
                    ended => ended,
                });
            }
            // Handled above.
            _ => {}
        }
    }

    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        let high = transport.listener().limits.send_high;
        self.write_below(transport, cx.io, &mut cx.scratch.bytes, high);
        let hold = transport.holds_back(cx.io, self.came);
        if let Some(request) = self.request
            && hold != self.holding
        {
            self.holding = hold;
            cx.requests.pause_reply(request, hold);
        }
        if !self.is_owed() {
            transport.finish(cx.io, None);
        }
    }

    fn flush_all(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        self.write_below(transport, cx.io, &mut cx.scratch.bytes, usize::MAX);
        false
    }

    /// The connection is the request.
    fn has_begun(&self) -> bool {
        true
    }

    fn is_owed(&self) -> bool {
        self.request.is_some() || self.outcome.is_some()
    }

    fn each_abandoned(&self, each: &mut dyn FnMut(RequestId)) {
        self.request.into_iter().for_each(each);
    }

    fn held(&self) -> usize {
        self.held
    }
}
