//! A client that speaks HTTP/1.
//!
//! One request of a connection is on its way at a time; what comes behind it waits unread. The
//! moves of the two directions, which are all that the connection knows of time (`moves.rs` has them as a
//! table):
//!
//! ```text
//!   input    what happens               becomes     and
//!   Head     a whole head, no body      Whole       it is submitted
//!   Head     a whole head, more body    Body        it is submitted, the client waits
//!   Body     the worker wants it        Body        parts go on
//!   Body     the last byte of it        Whole
//!   Head     a head, to a program       BufferedBody
//!   BufferedBody the last byte of a body   Whole       it is submitted with its body
//!   Whole    the reply is whole         Head        or the connection ends
//!   any      a broken rule, too slow    Ended       it is answered, nothing behind it is read
//!   Whole    the client's end           Whole       its reply is the last; or Ended, see `ends.rs`
//!   others   the client's end           Ended       what was begun is given up
//!
//!   output   None ─head─▶ Begun ─end─▶ Done         a head of status 1xx changes nothing
//!               └─────── answer of ours ──▶ Done
//!   both     101: Switched, both sides speak freely. The client's end is passed on, and what the server
//!            still says comes back; the server's end is that of both
//! ```
//!
//! A reply that is whole before its request is ends the connection: what is left of the request
//! must not be read as the next one.

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

use event::{Calls, Data};
use exchange::Slice;
use wire::http1::{Body, BodyKind, Limits, Method, Refusal, Sending, WholeChunks};

use crate::listener::HttpConfig;
use crate::routing::{RouteId, Way};
use crate::session::SessionContext;
use crate::transport::Transport;
pub(super) use client::Http;
pub use client::Spares;
use flow::client::Client;
use flow::http_request::HttpRequest;
use flow::payload::Payload;
use flow::request_meta::{RequestMeta, ResponseKind};
use flow::request_shape::RequestShape;
use flow::requests::Requests;
use http_exchange::{ActiveRequest, Ending, HttpExchange, Input, Output};
use local_reply::{RETRY, Requester, Said, TEXT, Told, tell};
use rejection::method_begun;
use route_context::RouteContext;
use states::Move;
pub use states::{session_moves, session_moves_made};

/// A body is taken along with its head as far as it is there, up to this; such a request can be
/// given to another server.
const BODY_HELD_MAX: usize = 64 << 10;

impl HttpExchange {
    /// Whether the response to the request at hand announces the end of the connection, whatever the
    /// request says: the client sends no more, or the daemon is about to end.
    fn is_last(&self, requests: &dyn Requests) -> bool {
        self.refusing || requests.drain_keepalive_timeout().is_some()
    }

    /// Where what comes of the next request goes.
    fn next_client(&mut self) -> Client {
        self.number = self.number.wrapping_add(1);
        Client::Session { session: self.id, sequence: u64::from(self.number) }
    }

    /// Whether nothing is begun or to be said. It may be behind an empty line, which is not consumed:
    /// whoever reads the next head reads that line again.
    fn is_over(&self) -> bool {
        let open = matches!(self.input, Input::Head) && !self.scan.is_begun() && !self.refusing;
        open && self.asked.is_none() && self.ending == Ending::No && !self.watched
    }

    pub(super) fn handle_data(
        &mut self,
        plan: &Arc<HttpConfig>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        loop {
            let bytes = data.bytes();
            match &mut self.input {
                Input::Ended => return data.consume(bytes.len()),
                Input::Head if bytes.is_empty() => return,
                // What routes answer by themselves waits for nobody but the client.
                Input::Head if transport.is_clogged(calls) => return transport.pause(calls),
                Input::Head => {
                    self.method = method_begun(bytes);
                    let found = match self.scan.next(bytes, &plan.limits) {
                        Ok(Some(found)) => found,
                        Ok(None) => return self.watch_head(plan, transport, calls),
                        Err(refusal) => {
                            return self.refuse_unread(bytes, transport, calls, refusal, cx);
                        }
                    };
                    let end = found.head.end;
                    match HttpRequest::read(&bytes[found.head.clone()], &found, &plan.limits) {
                        Ok(request) => {
                            data.consume(end);
                            self.ask(plan, transport, calls, data, request, cx);
                        }
                        Err(refusal) => {
                            self.refuse_unread(bytes, transport, calls, refusal, cx);
                            data.consume(end);
                        }
                    }
                }
                Input::Body(body) => {
                    let Some(asked) = self.asked.as_ref().filter(|asked| asked.wanted) else {
                        // It is not read before the worker wants it.
                        return transport.pause(calls);
                    };
                    let run = match body.run(bytes, &plan.limits) {
                        Ok(run) => run,
                        Err(refusal) => return self.refuse(transport, calls, refusal, cx),
                    };
                    if run.pass > 0 {
                        cx.requests.pass(asked.request, data.take(run.pass), run.data);
                    }
                    data.consume(run.drop);
                    if body.is_done() {
                        cx.requests.pass_end(asked.request);
                        self.step(Move::Complete, Input::Whole);
                        self.unwatch(transport, calls);
                    } else {
                        let came = run.pass + run.drop;
                        self.watch_body(plan, transport, calls, came);
                        if came == 0 {
                            return;
                        }
                    }
                }
                Input::BufferedBody(_) => {
                    if !self.gather(plan, transport, calls, data, cx) {
                        return;
                    }
                }
                Input::Whole => {
                    if !bytes.is_empty() {
                        transport.pause(calls);
                    }
                    return;
                }
                Input::Switched => return self.talk(transport, calls, data, cx),
            }
        }
    }

    /// Submits a request, with as much of its body as is there.
    fn ask(
        &mut self,
        plan: &Arc<HttpConfig>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        mut request: HttpRequest,
        cx: &mut SessionContext<'_>,
    ) {
        self.unwatch(transport, calls);
        let head = request.head_mut();
        cx.entry = cx.requests.access_log().begin_head(
            transport.listener().logged.as_ref(),
            head.line_bytes(),
            &head.fields,
        );
        let asked = cx.address_limits.request(cx.requests.now(), transport.entry());
        if let Err(outcome) = asked {
            return self.refuse_whole(transport, calls, head, &outcome, cx);
        }
        if head.method() == Method::Trace && !plan.allow_trace {
            return self.refuse_on(RouteId::REST, transport, calls, Refusal::Trace, cx);
        }
        let mut ways = std::mem::take(&mut cx.scratch.routes);
        let way = plan.routing.as_ref().map(|routing| routing.way(head, &mut ways));
        let (pool, route, changes) = match way {
            None => (transport.listener().pool, RouteId::REST, None),
            Some(Way::Pool { pool, route, plan }) => (pool, route, Some(plan)),
            Some(way) => {
                self.answer(transport, calls, head, &way, &ways, cx);
                cx.scratch.routes = ways;
                return;
            }
        };
        if self.stops_here(route, transport, calls, head, cx) {
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
                return self.ask_whole(
                    (&shape, &route_context),
                    plan,
                    transport,
                    calls,
                    request,
                    cx,
                );
            }
        }
        let head = request.head_mut();
        if !changes.map_or(plan.allow_upgrade, |route| route.allow_upgrade) {
            head.ignore_upgrade();
        }
        let (method, version) = (head.method(), head.version);
        let keep = head.connection.keep_alive && !self.is_last(cx.requests);
        let upgrades = head.upgrade.then(|| head.switches_to());
        let waits = head.expects_continue;
        route_context.prepare(plan, transport.peer(), head);
        // A server is given chunks only where it must be: what comes behind a body is told from it most
        // surely by a length.
        let whole = Some(data.bytes()).filter(|_| head.body == BodyKind::Chunked);
        let whole = whole.and_then(|bytes| WholeChunks::find(bytes, &plan.limits));
        if let Some(whole) = whole {
            head.give_length(whole.data);
        }
        let kind = if whole.is_some() { BodyKind::None } else { head.body };
        let mut body = Body::new(kind, &plan.limits);
        let (mut came, mut held, mut body_bytes) = (Slice::default(), Ok(()), 0);
        if whole.is_some() || !body.is_done() {
            let mut out = cx.scratch.take();
            if let Some(whole) = whole {
                body_bytes = whole.data;
                whole.copy(data.bytes(), &plan.limits, &mut out);
                data.consume(whole.used);
            }
            held = take_held(&mut body, &plan.limits, data, &mut out, &mut body_bytes);
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
            return self.refuse_on(route, transport, calls, refusal, cx);
        }
        if body.is_done() {
            self.step(Move::Ask, Input::Whole);
        } else {
            self.step(Move::AskPart, Input::Body(body));
        }
        let payload = Payload::Http(request.submitted(&plan.forwarding), came);
        let client = self.next_client();
        let request =
            cx.requests.submit(client, transport.source(), (payload, meta), pool, cx.entry.take());
        let requester = Requester { method, version, route };
        let asked = ActiveRequest::new(request, requester, keep, Told::TEXT);
        self.asked = Some(ActiveRequest { waits: meta.waits && meta.more, ..asked });
    }

    pub(super) fn flush(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        if let Some(asked) = &mut self.asked {
            let hold = transport.holds_back(calls, asked.came);
            if hold != asked.holding {
                asked.holding = hold;
                cx.requests.hold(asked.request, hold);
            }
        }
        if self.ending == Ending::CutOff {
            transport.reset(calls);
        } else if self.ending != Ending::No {
            transport.finish(calls, None);
        } else if matches!(self.input, Input::Head) && !transport.is_clogged(calls) {
            transport.resume(calls);
        }
    }
}

/// Takes what is there of a body along with its head, and counts its bytes without framing.
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
