//! Queries: requests whose worker receives the parameters of the target and returns a body.
//!
//! A small reply is sent as a whole, with its length. A larger one is sent in parts as the worker produces them. After
//! the first part, the only way to report an error is to end the connection.

use event::Context;
use exchange::Slice;
use wire::http1::{Body, Kind, Limits, Method, chunk_head, write_open_answer};

use super::local_reply::{edits, open_lines};
use super::route_context::RouteContext;
use super::{ActiveRequest, HttpExchange, Input, Move, Output, Requester, Sending};
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::transport::Transport;
use flow::http_request::HttpRequest;
use flow::payload::Payload;
use flow::request_meta::RequestMeta;
use flow::request_shape::RequestShape;

impl HttpExchange {
    /// Submits a query that was validated.
    pub(super) fn submit_question(
        &mut self,
        shape: &RequestShape,
        route_context: &RouteContext<'_>,
        config: &HttpConfig,
        transport: &Transport,
        request: HttpRequest,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let head = request.head();
        let requester =
            Requester { method: head.method(), version: head.version, route: route_context.route };
        let keep = head.connection.keep_alive && !self.is_last(cx.requests);
        self.step(Move::Ask, Input::Whole);
        // A reply to HEAD needs the length, which requires the whole body.
        let meta = RequestMeta { streams: requester.method == Method::Get, ..request.meta() };
        let payload = Payload::Http(request.submitted(&config.forwarding), Slice::default());
        let (client, entry) = (self.next_client(), cx.entry.take());
        let source = transport.source();
        let request =
            cx.requests.submit(client, source, (payload, meta), route_context.pool, entry);
        self.asked = Some(ActiveRequest::new(request, requester, keep, shape.plain_reply()));
    }
}

impl ActiveRequest {
    /// Writes the head of a reply whose first part has arrived.
    pub(super) fn begin(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        let date = cx.requests.date_line();
        let mut out = cx.scratch.take();
        let lines = open_lines(self.told.content_type, edits(transport, self.route), &date);
        let sending = write_open_answer(&lines, self.version, &mut self.keep, &mut out);
        transport.send_bytes(cx.io, &out);
        cx.scratch.give(out);
        self.output = Output::begun(self.method, sending);
        self.open_ended = matches!(self.output, Output::Begun(Sending::Verbatim | Sending::Data));
    }

    /// Sends a part of the body in the coding of the client.
    pub(super) fn send_part(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        part: Slice,
    ) {
        self.came = self.came.saturating_add(part.len());
        match self.output {
            Output::Begun(Sending::Verbatim) => transport.send(io, part),
            Output::Begun(Sending::Chunked) => {
                let (head, start) = chunk_head(part.len());
                transport.send_bytes(io, &head[start..]);
                transport.send(io, part);
                transport.send_bytes(io, b"\r\n");
            }
            Output::Begun(Sending::Data) => {
                if let Some(chunks) = &mut self.chunks {
                    send_data(chunks, transport, io, &part);
                }
            }
            Output::None | Output::HeadOnly | Output::Done => {}
        }
    }
}

/// Sends the data of a part of a chunked body. The backend has validated it by the same rules, so decoding cannot fail.
fn send_data(chunks: &mut Body, transport: &mut Transport, io: &mut Context<'_>, mut part: &[u8]) {
    while let Ok(Some(span)) = chunks.next(part, &Limits::REPLY) {
        let (bytes, rest) = part.split_at(span.length);
        if span.kind == Kind::Data {
            transport.send_bytes(io, bytes);
        }
        part = rest;
    }
}
