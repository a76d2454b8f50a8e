//! A client that speaks HTTP/1.
//!
//! One request of a connection is in flight at a time; further bytes remain unread. The transitions of both directions
//! (`states.rs` has them as a table):
//!
//! ```text
//!   input    what happens               becomes     and
//!   Head     a complete head, no body   Whole       it is submitted
//!   Head     a complete head, and body  Body        it is submitted, the body waits
//!   Body     the worker accepts more    Body        parts are forwarded
//!   Body     the last byte of it        Whole
//!   Head     a head, to a program       BufferedBody
//!   BufferedBody the last byte of a body   Whole       it is submitted with its body
//!   Whole    the reply is complete      Head        or the connection ends
//!   any      malformed, or a timeout    Ended       it is rejected, nothing after it is read
//!   Whole    the client's end           Whole       its reply is the last; or Ended, see `half_close.rs`
//!   others   the client's end           Ended       the incomplete request is abandoned
//!
//!   output   None ─head─▶ Begun ─end─▶ Done         a head of status 1xx changes nothing
//!               └─────── local reply ─────▶ Done
//!   both     101: Switched, a tunnel. The client's end is forwarded, and further bytes of the server are still
//!            delivered; the server's end ends both directions
//! ```
//!
//! A reply that is complete before its request ends the connection: the rest of the request must not be read as the
//! next one.

mod answers;
mod buffered_body;
mod client;
mod delivering;
mod gathering_body;
mod half_close;
mod hops;
mod http_exchange;
mod local_reply;
mod query;
mod refusing;
mod rejection;
mod route_context;
mod states;
mod timeouts;
mod tunnel;
mod unfit;

use std::sync::Arc;

use event::Data;
use exchange::Slice;
use wire::http1::{Body, BodyKind, Limits, Method, Refusal, Sending, WholeChunks};

use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::routing::{RouteDecision, RouteId};
use crate::transport::Transport;
use flow::client::Client;
use flow::http_request::HttpRequest;
use flow::payload::Payload;
use flow::request_meta::{RequestMeta, ResponseKind};
use flow::request_shape::RequestShape;
use flow::requests::Requests;
use http_exchange::{ActiveRequest, Ending, HttpExchange, Input, Output};
use local_reply::{LocalReply, RETRY, ReplyForm, Requester, TEXT, send_local_reply};
use rejection::method_begun;
use route_context::RouteContext;
use states::Move;
pub use states::{session_moves, session_moves_made};

/// The maximum size of a body part that is submitted with the head, in bytes. A request with a complete body can be
/// retried on another server.
const BODY_HELD_MAX: usize = 64 << 10;

impl HttpExchange {
    /// Whether the response to the current request must announce the end of the connection, regardless of the
    /// request: the client has ended its input, or the daemon drains.
    fn is_last(&self, requests: &dyn Requests) -> bool {
        self.refusing || requests.drain_keepalive_timeout().is_some()
    }

    /// The destination of the reply to the next request.
    fn next_client(&mut self) -> Client {
        self.number = self.number.wrapping_add(1);
        Client::Session { session: self.id, sequence: u64::from(self.number) }
    }

    /// Whether nothing has begun and nothing is outstanding. An empty line may have been received; it is not
    /// consumed, and is parsed again with the next head.
    fn is_over(&self) -> bool {
        let open = matches!(self.input, Input::Head) && !self.scan.is_begun() && !self.refusing;
        open && self.asked.is_none() && self.ending == Ending::No && !self.watched
    }

    pub(super) fn handle_data(
        &mut self,
        config: &Arc<HttpConfig>,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        loop {
            let bytes = data.bytes();
            match &mut self.input {
                Input::Ended => return data.consume(bytes.len()),
                Input::Head if bytes.is_empty() => return,
                // Responses of routes wait only for the client.
                Input::Head if transport.over_high_water(cx.io) => return transport.pause(cx.io),
                Input::Head => {
                    self.method = method_begun(bytes);
                    let found = match self.scan.next(bytes, &config.limits) {
                        Ok(Some(found)) => found,
                        Ok(None) => return self.watch_head(config, transport, cx.io),
                        Err(refusal) => {
                            return self.refuse_unread(bytes, transport, refusal, cx);
                        }
                    };
                    let end = found.head.end;
                    match HttpRequest::read(&bytes[found.head.clone()], &found, &config.limits) {
                        Ok(request) => {
                            data.consume(end);
                            self.ask(config, transport, data, request, cx);
                        }
                        Err(refusal) => {
                            self.refuse_unread(bytes, transport, refusal, cx);
                            data.consume(end);
                        }
                    }
                }
                Input::Body(body) => {
                    let Some(asked) = self.asked.as_ref().filter(|asked| asked.wanted) else {
                        // The body is not read before the worker accepts it.
                        return transport.pause(cx.io);
                    };
                    let run = match body.run(bytes, &config.limits) {
                        Ok(run) => run,
                        Err(refusal) => return self.refuse(transport, refusal, cx),
                    };
                    if run.pass > 0 {
                        cx.requests.pass(asked.request, data.take(run.pass), run.data);
                    }
                    data.consume(run.drop);
                    if body.is_done() {
                        cx.requests.pass_end(asked.request);
                        self.step(Move::Complete, Input::Whole);
                        self.unwatch(transport, cx.io);
                    } else {
                        let came = run.pass + run.drop;
                        self.watch_body(config, transport, cx.io, came);
                        if came == 0 {
                            return;
                        }
                    }
                }
                Input::BufferedBody(_) => {
                    if !self.gather(config, transport, data, cx) {
                        return;
                    }
                }
                Input::Whole => {
                    if !bytes.is_empty() {
                        transport.pause(cx.io);
                    }
                    return;
                }
                Input::Switched => return self.talk(transport, data, cx),
            }
        }
    }

    /// Submits a request, with the part of its body that has arrived.
    fn ask(
        &mut self,
        config: &Arc<HttpConfig>,
        transport: &mut Transport,
        data: &mut Data<'_>,
        mut request: HttpRequest,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.unwatch(transport, cx.io);
        let head = request.head_mut();
        cx.entry = cx.requests.access_log().begin_head(
            transport.listener().logged.as_ref(),
            head.line_bytes(),
            &head.fields,
        );
        let asked = cx.address_limits.request(cx.requests.now(), transport.entry());
        if let Err(outcome) = asked {
            return self.refuse_whole(transport, head, &outcome, cx);
        }
        if head.method() == Method::Trace && !config.allow_trace {
            return self.refuse_on(RouteId::REST, transport, Refusal::Trace, cx);
        }
        let mut ways = std::mem::take(&mut cx.scratch.routes);
        let way = config.routing.as_ref().map(|routing| routing.way(head, &mut ways));
        let (pool, route, changes) = match way {
            None => (transport.listener().pool, RouteId::REST, None),
            Some(RouteDecision::Pool { pool, route, config }) => (pool, route, Some(config)),
            Some(way) => {
                self.answer(transport, head, &way, &ways, cx);
                cx.scratch.routes = ways;
                return;
            }
        };
        if self.stops_here(route, transport, head, cx) {
            cx.scratch.routes = ways;
            return;
        }
        if changes.is_some() {
            request.set_target(ways.target_mut());
        }
        cx.scratch.routes = ways;
        let route_context = RouteContext { pool, route, changes };
        match cx.requests.shape(pool) {
            RequestShape::Messages => {}
            shape => {
                return self.ask_whole((&shape, &route_context), config, transport, request, cx);
            }
        }
        let head = request.head_mut();
        if !changes.map_or(config.allow_upgrade, |route| route.allow_upgrade) {
            head.ignore_upgrade();
        }
        let (method, version) = (head.method(), head.version);
        let keep = head.connection.keep_alive && !self.is_last(cx.requests);
        let upgrades = head.upgrade.then(|| head.switches_to());
        let waits = head.expects_continue;
        route_context.prepare(config, transport.peer(), head);
        // Chunks are forwarded only if the length is unknown: a length is the most reliable end of a body.
        let whole = Some(data.bytes()).filter(|_| head.body == BodyKind::Chunked);
        let whole = whole.and_then(|bytes| WholeChunks::find(bytes, &config.limits));
        if let Some(whole) = whole {
            head.set_length(whole.data);
        }
        let kind = if whole.is_some() { BodyKind::None } else { head.body };
        let mut body = Body::new(kind, &config.limits);
        let (mut came, mut held, mut body_bytes) = (Slice::default(), Ok(()), 0);
        if whole.is_some() || !body.is_done() {
            let mut out = cx.scratch.take();
            if let Some(whole) = whole {
                body_bytes = whole.data;
                whole.copy(data.bytes(), &config.limits, &mut out);
                data.consume(whole.used);
            }
            held = take_held(&mut body, &config.limits, data, &mut out, &mut body_bytes);
            came = Slice::copy_of(&out);
            cx.scratch.give(out);
        }
        let meta = request.meta();
        let expects = match (method, upgrades) {
            (Method::Head, _) | (_, None) => meta.expects,
            (_, Some(upgrades)) => ResponseKind::Switch(upgrades),
        };
        let meta = RequestMeta { more: !body.is_done(), waits, expects, ..meta };
        if let Some(log_entry) = &mut cx.entry {
            log_entry.bytes_in = body_bytes as u64;
        }
        if let Err(refusal) = held {
            return self.refuse_on(route, transport, refusal, cx);
        }
        if body.is_done() {
            self.step(Move::Ask, Input::Whole);
        } else {
            self.step(Move::AskPart, Input::Body(body));
        }
        let payload = Payload::Http(request.submitted(&config.forwarding), came);
        let client = self.next_client();
        let request =
            cx.requests.submit(client, transport.source(), (payload, meta), pool, cx.entry.take());
        let requester = Requester { method, version, route };
        let asked = ActiveRequest::new(request, requester, keep, ReplyForm::TEXT);
        self.asked = Some(ActiveRequest { waits: meta.waits && meta.more, ..asked });
    }

    pub(super) fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if let Some(asked) = &mut self.asked {
            let hold = transport.holds_back(cx.io, asked.came);
            if hold != asked.holding {
                asked.holding = hold;
                cx.requests.pause_reply(asked.request, hold);
            }
        }
        if self.ending == Ending::CutOff {
            transport.reset(cx.io);
        } else if self.ending != Ending::No {
            transport.finish(cx.io, None);
        } else if matches!(self.input, Input::Head) && !transport.over_high_water(cx.io) {
            transport.resume(cx.io);
        }
    }
}

/// Takes the part of a body that has arrived with the head, and counts its bytes without framing.
fn take_held(
    body: &mut Body,
    limits: &Limits,
    data: &mut Data<'_>,
    out: &mut Vec<u8>,
    body_bytes: &mut usize,
) -> Result<(), Refusal> {
    while !body.is_done() && out.len() < BODY_HELD_MAX {
        let run = body.run(data.bytes(), limits)?;
        *body_bytes += run.data;
        if run.pass + run.drop == 0 {
            break;
        }
        out.extend_from_slice(&data.bytes()[..run.pass]);
        data.consume(run.pass + run.drop);
    }
    Ok(())
}
