//! Requests whose body is buffered before they are submitted: to programs, which receive one object, and to pools that
//! store records.

use event::Data;
use exchange::{Cause, Outcome, Phase, Slice};
use wire::http1::BodyKind;

use super::gathering_body::{BufferedBody, Taken};
use super::rejection::Why;
use super::route_context::RouteContext;
use super::{ActiveRequest, HttpExchange, Input, Move, Requester};
use crate::bodies::Full;
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::transport::Transport;
use flow::client::Source;
use flow::http_request::HttpRequest;
use flow::payload::Payload;
use flow::request_shape::RequestShape;

/// The interim response to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl HttpExchange {
    /// Begins a request that is submitted when its body is complete.
    pub(super) fn ask_whole(
        &mut self,
        (shape, route_context): (&RequestShape, &RouteContext<'_>),
        config: &HttpConfig,
        transport: &mut Transport,
        mut request: HttpRequest,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let &RouteContext { pool, route, .. } = route_context;
        if matches!(shape, RequestShape::Records(_)) && request.head().body.is_some() {
            let why = Why::of(Cause::Malformed, "a question has no body");
            return self.refuse_with(transport, (413, route), why, cx);
        }
        let mut out = cx.scratch.take();
        let fits = shape.check(&request, &mut out);
        cx.scratch.give(out);
        if let Err(why) = fits {
            return self.answer_unfit(&why, route, transport, request.head(), cx);
        }
        route_context.prepare(config, transport.peer(), request.head_mut());
        if let RequestShape::Records(_) = shape {
            return self.submit_question(shape, route_context, config, transport, request, cx);
        }
        let told = shape.plain_reply();
        let waits = request.head().expects_continue;
        let buffered = BufferedBody::new((pool, route), config, transport.peer(), request, told);
        self.begin_gathering(buffered, waits, transport, cx);
    }

    /// Begins to buffer the body. A client with `Expect: 100-continue` receives the interim response.
    fn begin_gathering(
        &mut self,
        mut buffered: BufferedBody,
        waits: bool,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) {
        buffered.log_entry = cx.entry.take();
        if waits {
            transport.send_bytes(cx.io, CONTINUE);
        }
        self.step(Move::Gather, Input::BufferedBody(Box::new(buffered)));
    }

    /// Buffers more of the body, and submits the request when it is complete. `false`: the received bytes allow no
    /// further progress.
    pub(super) fn gather(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let Input::BufferedBody(buffered) = &mut self.input else { return false };
        let before = data.bytes().len();
        match buffered.take(config, data) {
            Ok(Taken::Whole) => {
                self.unwatch(transport, cx.io);
                if let Input::BufferedBody(whole) = self.step(Move::Complete, Input::Whole) {
                    self.submit_gathered(config, *whole, transport.source(), cx);
                }
                true
            }
            Ok(Taken::Full(full)) => {
                self.refuse_full(full, config.body_limits.all, transport, cx);
                false
            }
            Ok(Taken::More) => {
                self.watch_body(config, transport, cx.io, before - data.bytes().len());
                false
            }
            Err(refusal) => {
                self.restore_trail(cx);
                self.refuse(transport, refusal, cx);
                false
            }
        }
    }

    /// Restores the access log entry that was begun with the head, for a rejection.
    pub(super) fn restore_trail(&mut self, cx: &mut SessionContext<'_, '_>) {
        if let Input::BufferedBody(buffered) = &mut self.input {
            cx.entry = buffered.log_entry.take();
        }
    }

    /// Rejects a request because the limit of all bodies or of this client's bodies was reached.
    fn refuse_full(
        &mut self,
        full: Full,
        max: usize,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.restore_trail(cx);
        let whose = match full {
            Full::All => "",
            Full::Client => ", and those of one client half of what others leave",
        };
        let text = format!("the bodies of all requests together hold at most {max} bytes{whose}");
        let route = self.route();
        self.refuse_with(transport, (503, route), Why::of(Cause::Full, &text), cx);
    }

    /// Ends a request whose client left before its body was complete, and writes its access log line.
    pub(super) fn end_gathering(
        &mut self,
        transport: &Transport,
        cause: Cause,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let Input::BufferedBody(buffered) = &mut self.input else { return };
        let (pool, bytes) = (buffered.pool, buffered.held.len());
        cx.entry = buffered.log_entry.take();
        if let Some(log_entry) = &mut cx.entry {
            log_entry.bytes_in = bytes as u64;
        }
        let text = "its client left before its body was whole";
        let outcome = Outcome::ended(cause, Phase::Receive, text);
        cx.requests.refused_at_receipt(pool, transport.source(), &outcome, cx.entry.take());
    }

    fn submit_gathered(
        &mut self,
        config: &HttpConfig,
        whole: BufferedBody,
        source: Source,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let BufferedBody { pool, route, told, mut request, held, log_entry, .. } = whole;
        let head = request.head_mut();
        if head.body == BodyKind::Chunked {
            // The framing was removed.
            head.set_length(held.len());
        }
        let requester = Requester { method: head.method(), version: head.version, route };
        let keep = head.connection.keep_alive && !self.is_last(cx.requests);
        let meta = request.meta();
        let payload = Payload::Http(request.submitted(&config.forwarding), Slice::from(&held[..]));
        cx.entry = log_entry;
        if let Some(log_entry) = &mut cx.entry {
            log_entry.bytes_in = held.len() as u64;
            log_entry.replied = told.status;
        }
        let client = self.next_client();
        let request = cx.requests.submit(client, source, (payload, meta), pool, cx.entry.take());
        self.asked = Some(ActiveRequest::new(request, requester, keep, told));
    }
}
