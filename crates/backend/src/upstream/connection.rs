//! One connection to a server. It carries one request at a time.

use event::{Context, Data, StreamId};
use exchange::mutant::{Mutant, active};
use exchange::{Cause, RequestId, Slice, WorkerId};
use wire::http1::{Body, HeadScan, Limits, Method, Refusal, RequestInfo, Upgrades};

use super::fault::Fault;
use super::retry::{Reached, RetryRules};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::payload::{Payload, Request};
use flow::reply_head::BoxedReplyHead;
use flow::request_meta::{RequestMeta, ResponseKind};

/// The minimum number of remaining body bytes for direct forwarding. For fewer bytes the setup costs more than it
/// saves.
const UNSEEN_MIN: u64 = 128 << 10;

/// The starts of responses that a server may send on an idle connection before it closes the connection.
const CLOSING_RESPONSES: [&[u8]; 2] = [b"HTTP/1.1 408 ", b"HTTP/1.0 408 "];

/// The result of reading bytes, or of their end.
#[derive(Debug)]
pub(super) enum Step {
    /// The reply is incomplete.
    More,
    /// The reply is complete with `last`, the rest of its body. `keep`: the server keeps the connection open.
    Whole {
        last: Slice,
        keep: bool,
    },
    /// The server has closed its direction of a tunnel.
    ServerHalfClosed(RequestId),
    /// The server sent bytes without a request. `is_closing_response`: an allowed response before it closes the connection.
    Unrequested {
        is_closing_response: bool,
    },
    /// The response has a status after which the request is retried on another server.
    Rejected(u16),
    Fault(Fault),
}

impl Step {
    /// Creates the step for a complete reply whose body was already forwarded.
    fn whole(keep: bool) -> Self {
        Self::Whole { last: Slice::default(), keep }
    }
}

/// The state of the reply.
#[derive(Debug)]
enum Reply {
    /// Its head is incomplete. Each request starts with a new scan.
    Head(HeadScan),
    Body(Body),
    /// A tunnel.
    Switched,
}

/// The request that is in flight on a connection.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) id: RequestId,
    /// Its content for a retry. It is kept until a head of the reply arrives.
    pub(super) payload: Payload,
    /// Its encoded size in bytes.
    written: usize,
    pub(super) meta: RequestMeta,
    /// Whether parts of its body were forwarded or requested. It cannot be retried then.
    pub(super) passed: bool,
    /// Whether the reply is no longer needed.
    pub(super) abandoned: bool,
    /// Whether the reply is paused.
    pub(super) held: bool,
    /// Whether a head of the reply was forwarded.
    begun: bool,
    /// Whether direct forwarding was offered.
    long: bool,
    reply: Reply,
    interim: u32,
    /// Whether the request has a body that the server may leave unread.
    has_body: bool,
    keep: bool,
    /// Whether the server has closed its direction of a tunnel.
    server_half_closed: bool,
}

impl ActiveRequest {
    /// Whether this is a tunnel.
    pub(super) const fn is_tunnel(&self) -> bool {
        matches!(self.reply, Reply::Switched)
    }

    /// Whether the server may have switched the protocol, although its 101 has not arrived.
    const fn may_be_tunnel(&self) -> bool {
        let is_open = matches!(self.reply, Reply::Head(_));
        self.is_tunnel() || is_open && matches!(self.meta.expects, ResponseKind::Switch(_))
    }
}

/// A connection. The state of a request is in its [`ActiveRequest`], which is created for each request; the other fields
/// belong to the connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: StreamId,
    pub(super) worker: WorkerId,
    pub(super) flight: Option<ActiveRequest>,
    /// Whether the server has a different address now. The connection is then not kept.
    pub(super) address_changed: bool,
    connecting: bool,
}

/// Whether the body of a request with this method has no meaning (RFC 9110 §9.3). Some servers would not read the body
/// and would parse it as the next request, so the client could forge a reply to another client.
const fn has_unexpected_body(method: Method) -> bool {
    use Method::{Delete, Get, Head, Options, Trace};
    matches!(method, Get | Head | Delete | Options | Trace)
}

/// The maximum size of a body that is sent together with its head, in bytes.
const BODY_COPIED_MAX: usize = 4096;

/// Whether servers often send this status without reading the body of the request. They may then parse the body as the
/// next request.
const fn may_leave_body(status: u16) -> bool {
    status >= 400 || matches!(status, 301 | 307 | 308)
}

impl Connection {
    pub(super) fn new(stream: StreamId, worker: WorkerId) -> Self {
        Self { stream, worker, flight: None, address_changed: false, connecting: true }
    }

    pub(super) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// Whether the client is expected to act: it has not completed the request, or does not read the reply.
    pub(super) fn waits_for_client(&self, io: &Context<'_>) -> bool {
        self.owed_by_client(io).is_some()
    }

    /// Returns the cause of the outcome if a timeout expires while the client is expected to act.
    pub(super) fn owed_by_client(&self, io: &Context<'_>) -> Option<Cause> {
        let flight = self.flight.as_ref()?;
        let is_untaken = flight.held || io.relay_waits(self.stream);
        let is_unsaid = flight.meta.more
            && !flight.meta.waits
            && !self.connecting
            && io.queued(self.stream) == 0;
        match flight.reply {
            _ if is_untaken => Some(Cause::Stalled),
            _ if self.is_tunnel() => (!self.is_fully_closed()).then_some(Cause::Overtime),
            _ => is_unsaid.then_some(Cause::Incomplete),
        }
    }

    /// Whether the body of the reply is incomplete.
    pub(super) fn owes_body(&self) -> bool {
        let reply = self.flight.as_ref().map(|flight| &flight.reply);
        matches!(reply, Some(Reply::Body(body)) if !body.is_done())
    }

    /// Whether the head of the reply has arrived.
    pub(super) fn has_answered(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| !matches!(flight.reply, Reply::Head(_)))
    }

    /// Whether this is a tunnel.
    pub(super) fn is_tunnel(&self) -> bool {
        self.flight.as_ref().is_some_and(ActiveRequest::is_tunnel)
    }

    /// Whether a clean end could be mistaken by the server for the end of the client's data in a tunnel.
    pub(super) fn ends_by_reset(&self) -> bool {
        self.flight.as_ref().is_some_and(ActiveRequest::may_be_tunnel)
    }

    pub(super) fn serves(&self, worker: WorkerId, request: RequestId) -> bool {
        self.worker == worker && self.flight.as_ref().is_some_and(|flight| flight.id == request)
    }

    pub(super) fn send(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        request: Request,
        meta: RequestMeta,
        scratch: &mut Vec<u8>,
    ) {
        let Request { id, peer, payload, .. } = request;
        let (written, has_body, keep) = match &payload {
            Payload::Http(head, body) => {
                scratch.clear();
                head.write(peer, scratch);
                let written = scratch.len() + body.len();
                if body.len() <= BODY_COPIED_MAX {
                    scratch.extend_from_slice(body);
                    cx.io.send_bytes(self.stream, scratch);
                } else {
                    cx.io.send_bytes(self.stream, scratch);
                    cx.io.send_kept(self.stream, body);
                }
                let has_body = meta.more || !body.is_empty();
                (written, has_body, !(has_body && has_unexpected_body(head.head().method())))
            }
            // A request that the daemon itself sends is already encoded.
            Payload::Frame(message) => {
                cx.io.send_kept(self.stream, message);
                (message.len(), true, false)
            }
        };
        self.flight = Some(ActiveRequest {
            id,
            payload,
            written,
            meta,
            passed: meta.more && !self.connecting,
            abandoned: false,
            held: false,
            begun: false,
            long: false,
            reply: Reply::Head(HeadScan::default()),
            interim: 0,
            has_body,
            keep,
            server_half_closed: false,
        });
        // Until the connection is established, the request and its body may go to another server.
        if meta.more && !self.connecting {
            cx.events.push(BackendEvent::BodyWanted { id, wanted: true });
        }
    }

    pub(super) fn connected(&mut self, events: &mut Vec<BackendEvent>) {
        self.connecting = false;
        events.extend(self.flight.as_ref().map(|flight| BackendEvent::Linked { id: flight.id }));
        if let Some(flight) = self.flight.as_mut().filter(|flight| flight.meta.more) {
            flight.passed = true;
            events.push(BackendEvent::BodyWanted { id: flight.id, wanted: true });
        }
    }

    /// Sends a part of the request body. Returns the bytes in the output buffer.
    pub(super) fn pass(&mut self, io: &mut Context<'_>, part: Slice) -> usize {
        if let Some(flight) = &mut self.flight {
            flight.meta.waits = false;
        }
        io.send(self.stream, part)
    }

    /// Ends the request body, or the client's direction of a tunnel.
    pub(super) fn pass_end(&mut self, io: &mut Context<'_>) {
        let Some(flight) = &mut self.flight else { return };
        flight.meta.more = false;
        if matches!(flight.reply, Reply::Switched) {
            io.finish_sending(self.stream);
        }
    }

    /// Whether both directions of a tunnel are closed.
    pub(super) fn is_fully_closed(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.server_half_closed && !flight.meta.more)
    }

    /// Whether the server has closed its direction of a tunnel.
    pub(super) fn has_server_half_closed(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.server_half_closed)
    }

    pub(super) fn pause_reply(&mut self, io: &mut Context<'_>, hold: bool) {
        if let Some(flight) = &mut self.flight {
            flight.held = hold;
            if hold {
                io.pause(self.stream);
            } else {
                io.resume(self.stream);
            }
        }
    }

    /// Returns how far the request has come. It must be called before the stream is closed.
    pub(super) fn reached(&self, io: &Context<'_>) -> Reached {
        match &self.flight {
            _ if self.connecting => Reached::Unsent,
            Some(flight) if flight.begun => Reached::Reply,
            // All of it is still in the output buffer.
            Some(flight) if io.queued(self.stream) >= flight.written && !flight.passed => {
                Reached::Unsent
            }
            _ => Reached::Server,
        }
    }

    /// Handles received bytes. `again`: the requests that may be retried after a status; `None`: none.
    pub(super) fn receive(
        &mut self,
        data: &mut Data<'_>,
        limits: &Limits,
        again: Option<RetryRules>,
        events: &mut Vec<BackendEvent>,
    ) -> Step {
        let Some(flight) = &mut self.flight else {
            // No request is in flight. Some servers send 408 before they close an idle connection (RFC 9110 §15.5.9).
            let is_closing_response =
                CLOSING_RESPONSES.iter().any(|it| data.bytes().starts_with(it));
            return Step::Unrequested { is_closing_response };
        };
        loop {
            match &mut flight.reply {
                Reply::Head(scan) => match read_head(scan, data, flight.meta, limits) {
                    Ok(None) => return Step::More,
                    Err(refusal) => return Step::Fault(Fault::Broken(refusal)),
                    Ok(Some(mut carried)) => {
                        let head = carried.head();
                        if head.has_forbidden_body() {
                            events.push(BackendEvent::Broken { refusal: Refusal::Bodiless });
                        }
                        // A body after a 1xx status would be read as the reply.
                        flight.keep &= head.connection.keep_alive;
                        if head.is_interim() {
                            flight.interim += 1;
                            if flight.interim > limits.interim {
                                return Step::Fault(Fault::Broken(Refusal::Interim));
                            }
                        } else {
                            flight.keep &= !(flight.has_body && may_leave_body(head.status));
                            flight.reply = if head.status == 101 {
                                // Further bytes of the client follow its request.
                                flight.meta.more = true;
                                flight.passed = true;
                                Reply::Switched
                            } else {
                                Reply::Body(Body::new(head.body, limits))
                            };
                        }
                        let status = head.status;
                        let retried = again.is_some_and(|it| it.allows_after(status, flight.meta));
                        if retried && !flight.begun && !flight.passed && !flight.abandoned {
                            carried.recycle();
                            return Step::Rejected(status);
                        }
                        flight.begun = true;
                        flight.meta.waits = false;
                        // From here on the request cannot be retried.
                        flight.payload = Payload::default();
                        events.push(BackendEvent::Head { id: flight.id, head: carried });
                    }
                },
                Reply::Body(body) if body.is_done() => return Step::whole(flight.keep),
                Reply::Body(body) => {
                    let run = match body.run(data.bytes(), limits) {
                        Ok(run) => run,
                        Err(refusal) => return Step::Fault(Fault::Broken(refusal)),
                    };
                    let part = (run.pass > 0).then(|| data.take(run.pass));
                    data.consume(run.drop);
                    if body.is_done() {
                        return Step::Whole { last: part.unwrap_or_default(), keep: flight.keep };
                    }
                    events.extend(part.map(|part| BackendEvent::Part { id: flight.id, part }));
                    if run.pass + run.drop == 0 {
                        if body.ahead() >= UNSEEN_MIN && !std::mem::replace(&mut flight.long, true)
                        {
                            events.push(BackendEvent::SpliceOffer {
                                id: flight.id,
                                from: self.stream,
                            });
                        }
                        return Step::More;
                    }
                }
                Reply::Switched => {
                    let length = data.bytes().len();
                    if length > 0 {
                        let part = data.take(length);
                        events.push(BackendEvent::Part { id: flight.id, part });
                    }
                    return Step::More;
                }
            }
        }
    }

    /// Discards a rejected response. Returns `true` if it is complete and the server keeps the connection open.
    pub(super) fn discard(&mut self, data: &mut Data<'_>, limits: &Limits) -> bool {
        let Some(ActiveRequest { reply: Reply::Body(body), keep, .. }) = &mut self.flight else {
            return false;
        };
        while !body.is_done() {
            let Ok(run) = body.run(data.bytes(), limits) else { return false };
            if run.pass + run.drop == 0 {
                return false;
            }
            data.consume(run.pass + run.drop);
        }
        *keep && data.bytes().is_empty()
    }

    /// Forwards the rest of the body directly to this stream, except for its last byte. That byte and all bytes after
    /// it are received here.
    pub(super) fn relay(&mut self, io: &mut Context<'_>, to: StreamId) {
        if let Some(ActiveRequest { reply: Reply::Body(body), .. }) = &self.flight
            && body.ahead() > 1
        {
            // If the stream is gone, its end is reported.
            let _ = io.relay(self.stream, to, Some(body.ahead() - 1));
        }
    }

    /// Counts bytes that were forwarded directly.
    pub(super) fn relayed(&mut self, count: u64, done: bool, events: &mut Vec<BackendEvent>) {
        if let Some(flight) = &mut self.flight
            && let Reply::Body(body) = &mut flight.reply
        {
            body.passed(count.saturating_sub(u64::from(active(Mutant::Miscount))));
            events.push(BackendEvent::Spliced { id: flight.id, count, done });
        }
    }

    /// Handles the end of received bytes.
    pub(super) fn ended(&mut self) -> Step {
        let Some(flight) = &mut self.flight else { return Step::More };
        match &mut flight.reply {
            Reply::Head(_) => Step::Fault(Fault::Ended),
            Reply::Body(body) => match body.end() {
                Ok(()) => Step::whole(false),
                Err(_) => Step::Fault(Fault::Ended),
            },
            Reply::Switched => {
                flight.server_half_closed = true;
                Step::ServerHalfClosed(flight.id)
            }
        }
    }
}

fn read_head(
    scan: &mut HeadScan,
    data: &mut Data<'_>,
    meta: RequestMeta,
    limits: &Limits,
) -> Result<Option<BoxedReplyHead>, Refusal> {
    let Some(found) = scan.next(data.bytes(), limits)? else { return Ok(None) };
    let asked = RequestInfo {
        method: if meta.expects == ResponseKind::HeadOnly { Method::Head } else { Method::Get },
        upgrades: match meta.expects {
            ResponseKind::Switch(upgrades) => upgrades,
            ResponseKind::Reply | ResponseKind::HeadOnly => Upgrades::default(),
        },
    };
    let head = BoxedReplyHead::read(&data.bytes()[..found.head.end], &found, asked, limits);
    data.consume(found.head.end);
    head.map(Some)
}
