//! One connection to a server: a request out, its reply in, and the next.

use event::{Calls, Data, StreamId};
use exchange::plant::{Plant, active};
use exchange::{Cause, RequestId, Slice, WorkerId};
use wire::http1::{Asked, Body, HeadScan, Limits, Method, Refusal, Upgrades};

use super::fault::Fault;
use super::retry::{Declared, Reached};
use flow::backend_event::BackendEvent;
use flow::payload::{Payload, Request};
use flow::reply_head::Carried;
use flow::request_meta::{RequestMeta, ResponseKind};

/// A reply of which so much is still to come goes on without being looked at, where that can be: less
/// costs more to arrange than it saves.
const UNSEEN_MIN: u64 = 128 << 10;

/// What a server may send on an idle connection before it closes it.
const FAREWELLS: [&[u8]; 2] = [b"HTTP/1.1 408 ", b"HTTP/1.0 408 "];

/// What follows from received bytes, or their end.
#[derive(Debug)]
pub(super) enum Step {
    /// More has to come.
    More,
    /// The reply is whole with what is `last` of its body; `keep`: the server goes on with the
    /// connection.
    Whole {
        last: Slice,
        keep: bool,
    },
    /// The server has ended its direction of a tunnel.
    SaidAll(RequestId),
    /// It sent bytes though it has no request; `is_farewell`: as it may before it closes.
    Unrequested {
        is_farewell: bool,
    },
    /// The response has a status after which the request is given to another server.
    Rejected(u16),
    Fault(Fault),
}

impl Step {
    /// Nothing is left of the reply that was not passed on.
    fn whole(keep: bool) -> Self {
        Self::Whole { last: Slice::default(), keep }
    }
}

/// How far the reply has come.
#[derive(Debug)]
enum Reply {
    /// The scan is of this reply alone: each request begins with a new one.
    Head(HeadScan),
    Body(Body),
    /// Both sides speak freely.
    Switched,
}

/// The request that a link has.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: RequestId,
    /// As it was given to us, to be given back: until a head of the reply has come.
    pub(super) payload: Payload,
    /// Bytes of it as they were written.
    written: usize,
    pub(super) meta: RequestMeta,
    /// Parts of its body went on, or were asked for and may be on their way here: then it can be
    /// given to nobody else.
    pub(super) passed: bool,
    /// Nobody wants the reply.
    pub(super) abandoned: bool,
    /// Its client does not take the reply at the moment.
    pub(super) held: bool,
    /// A head of the reply went on. Whatever came before one was nobody's.
    begun: bool,
    /// It was said that much is to come.
    long: bool,
    reply: Reply,
    interim: u32,
    /// The request has a body, which the server may leave unread.
    has_body: bool,
    keep: bool,
    /// The server has ended its direction of a tunnel.
    said_all: bool,
}

impl Flight {
    /// Whether both sides speak freely.
    pub(super) const fn is_tunnel(&self) -> bool {
        matches!(self.reply, Reply::Switched)
    }

    /// Whether the server may have changed the protocol, though its 101 has not come yet.
    const fn may_be_tunnel(&self) -> bool {
        let is_open = matches!(self.reply, Reply::Head(_));
        self.is_tunnel() || is_open && matches!(self.meta.expects, ResponseKind::Switch(_))
    }
}

/// A connection. What belongs to one request is in its [`Flight`], which is made for each request; only
/// what belongs to the connection itself is kept from one request to the next.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stream: StreamId,
    pub(super) worker: WorkerId,
    pub(super) flight: Option<Flight>,
    /// Its server has another address by now: it is not kept.
    pub(super) leaves: bool,
    connecting: bool,
}

/// Whether a body of a request with this method means nothing (RFC 9110 §9.3): some servers would not read
/// it, and take it for the next request. Its client would choose what another client is answered.
const fn has_unexpected_body(method: Method) -> bool {
    use Method::{Delete, Get, Head, Options, Trace};
    matches!(method, Get | Head | Delete | Options | Trace)
}

/// A body of at most so many bytes goes out in one part with its head.
const BODY_COPIED_MAX: usize = 4096;

/// Whether a server often says this before it has read the body of the request, or without doing so: then
/// it may take the body for the next request.
const fn may_leave_body(status: u16) -> bool {
    status >= 400 || matches!(status, 301 | 307 | 308)
}

impl Link {
    pub(super) fn new(stream: StreamId, worker: WorkerId) -> Self {
        Self { stream, worker, flight: None, leaves: false, connecting: true }
    }

    pub(super) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// Whether the server owes nothing at the moment: its client has not said all and what it said has
    /// left us, or does not take what came.
    pub(super) fn waits_for_client(&self, calls: &Calls<'_>) -> bool {
        self.owed_by_client(calls).is_some()
    }

    /// What the client is to blame for when a time passes in which the server owes nothing.
    pub(super) fn owed_by_client(&self, calls: &Calls<'_>) -> Option<Cause> {
        let flight = self.flight.as_ref()?;
        let is_untaken = flight.held || calls.relay_waits(self.stream);
        let is_unsaid = flight.meta.more
            && !flight.meta.waits
            && !self.connecting
            && calls.queued(self.stream) == 0;
        match flight.reply {
            _ if is_untaken => Some(Cause::Stalled),
            _ if self.is_tunnel() => (!self.both_have_ended()).then_some(Cause::Overtime),
            _ => is_unsaid.then_some(Cause::Incomplete),
        }
    }

    /// Whether the body of its reply is not whole.
    pub(super) fn owes_body(&self) -> bool {
        let reply = self.flight.as_ref().map(|flight| &flight.reply);
        matches!(reply, Some(Reply::Body(body)) if !body.is_done())
    }

    /// Whether the head of its reply has come.
    pub(super) fn has_answered(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| !matches!(flight.reply, Reply::Head(_)))
    }

    /// Whether both sides speak freely.
    pub(super) fn is_tunnel(&self) -> bool {
        self.flight.as_ref().is_some_and(Flight::is_tunnel)
    }

    /// Whether its server could take an orderly end for the end of what a client says in a tunnel.
    pub(super) fn ends_by_reset(&self) -> bool {
        self.flight.as_ref().is_some_and(Flight::may_be_tunnel)
    }

    pub(super) fn serves(&self, worker: WorkerId, request: RequestId) -> bool {
        self.worker == worker && self.flight.as_ref().is_some_and(|flight| flight.id == request)
    }

    pub(super) fn send(
        &mut self,
        calls: &mut Calls<'_>,
        request: Request,
        meta: RequestMeta,
        scratch: &mut Vec<u8>,
        up: &mut Vec<BackendEvent>,
    ) {
        let Request { id, peer, payload, .. } = request;
        let (written, has_body, keep) = match &payload {
            Payload::Http(head, body) => {
                scratch.clear();
                head.write(peer, scratch);
                let written = scratch.len() + body.len();
                if body.len() <= BODY_COPIED_MAX {
                    scratch.extend_from_slice(body);
                    calls.send_bytes(self.stream, scratch);
                } else {
                    calls.send_bytes(self.stream, scratch);
                    calls.send_kept(self.stream, body);
                }
                let has_body = meta.more || !body.is_empty();
                (written, has_body, !(has_body && has_unexpected_body(head.head().method())))
            }
            // What is asked in this process is a message as it is.
            Payload::Frame(message) => {
                calls.send_kept(self.stream, message);
                (message.len(), true, false)
            }
        };
        self.flight = Some(Flight {
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
            said_all: false,
        });
        // As long as it connects the request may go to another server, and its body with it.
        if meta.more && !self.connecting {
            up.push(BackendEvent::BodyWanted { id, wanted: true });
        }
    }

    pub(super) fn connected(&mut self, up: &mut Vec<BackendEvent>) {
        self.connecting = false;
        up.extend(self.flight.as_ref().map(|flight| BackendEvent::Linked { id: flight.id }));
        if let Some(flight) = self.flight.as_mut().filter(|flight| flight.meta.more) {
            flight.passed = true;
            up.push(BackendEvent::BodyWanted { id: flight.id, wanted: true });
        }
    }

    /// A part of the request's body. Returns the bytes that wait to be sent.
    pub(super) fn pass(&mut self, calls: &mut Calls<'_>, part: Slice) -> usize {
        if let Some(flight) = &mut self.flight {
            flight.meta.waits = false;
        }
        calls.send(self.stream, part)
    }

    /// All of the request's body was passed, or its client ended its direction of a tunnel.
    pub(super) fn pass_end(&mut self, calls: &mut Calls<'_>) {
        let Some(flight) = &mut self.flight else { return };
        flight.meta.more = false;
        if matches!(flight.reply, Reply::Switched) {
            calls.finish_sending(self.stream);
        }
    }

    /// Whether both directions of a tunnel have ended.
    pub(super) fn both_have_ended(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.said_all && !flight.meta.more)
    }

    /// Whether the server has ended its direction of a tunnel.
    pub(super) fn has_said_all(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.said_all)
    }

    pub(super) fn hold(&mut self, calls: &mut Calls<'_>, hold: bool) {
        if let Some(flight) = &mut self.flight {
            flight.held = hold;
            if hold {
                calls.pause(self.stream);
            } else {
                calls.resume(self.stream);
            }
        }
    }

    /// How far its request has come, seen while its stream is there or its end is told.
    pub(super) fn reached(&self, calls: &Calls<'_>) -> Reached {
        match &self.flight {
            _ if self.connecting => Reached::Nobody,
            Some(flight) if flight.begun => Reached::Reply,
            // All of it still waits in our own output.
            Some(flight) if calls.queued(self.stream) >= flight.written && !flight.passed => {
                Reached::Nobody
            }
            _ => Reached::Server,
        }
    }

    /// Takes what came of the reply. `again`: what may be retried after its status; none: nothing.
    pub(super) fn receive(
        &mut self,
        data: &mut Data<'_>,
        limits: &Limits,
        again: Option<Declared>,
        up: &mut Vec<BackendEvent>,
    ) -> Step {
        let Some(flight) = &mut self.flight else {
            // Nothing that it sends now is anybody's. Some servers say that a connection was idle for
            // too long before they close it (RFC 9110 §15.5.9).
            let is_farewell = FAREWELLS.iter().any(|it| data.bytes().starts_with(it));
            return Step::Unrequested { is_farewell };
        };
        loop {
            match &mut flight.reply {
                Reply::Head(scan) => match read_head(scan, data, flight.meta, limits) {
                    Ok(None) => return Step::More,
                    Err(refusal) => return Step::Fault(Fault::Broken(refusal)),
                    Ok(Some(mut carried)) => {
                        let head = carried.head();
                        if head.tells_of_a_body_in_vain() {
                            up.push(BackendEvent::Broken { refusal: Refusal::Bodiless });
                        }
                        // What one of status 1xx has behind it would be read as the reply.
                        flight.keep &= head.connection.keep_alive;
                        if head.is_interim() {
                            flight.interim += 1;
                            if flight.interim > limits.interim {
                                return Step::Fault(Fault::Broken(Refusal::Interim));
                            }
                        } else {
                            flight.keep &= !(flight.has_body && may_leave_body(head.status));
                            flight.reply = if head.status == 101 {
                                // What the client says now comes behind its request.
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
                        // It is given to nobody else from here on.
                        flight.payload = Payload::default();
                        up.push(BackendEvent::Head { id: flight.id, head: carried });
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
                    up.extend(part.map(|part| BackendEvent::Part { id: flight.id, part }));
                    if run.pass + run.drop == 0 {
                        if body.ahead() >= UNSEEN_MIN && !std::mem::replace(&mut flight.long, true)
                        {
                            up.push(BackendEvent::SpliceOffer { id: flight.id, from: self.stream });
                        }
                        return Step::More;
                    }
                }
                Reply::Switched => {
                    let length = data.bytes().len();
                    if length > 0 {
                        let part = data.take(length);
                        up.push(BackendEvent::Part { id: flight.id, part });
                    }
                    return Step::More;
                }
            }
        }
    }

    /// Discards a response that nobody gets. True when all of it has come, and the server goes on with
    /// the connection.
    pub(super) fn discard(&mut self, data: &mut Data<'_>, limits: &Limits) -> bool {
        let Some(Flight { reply: Reply::Body(body), keep, .. }) = &mut self.flight else {
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

    /// What lies ahead of the body goes to this stream, as far as it need not be looked at: the last
    /// byte comes here, and what the server says behind it.
    pub(super) fn relay(&mut self, calls: &mut Calls<'_>, to: StreamId) {
        if let Some(Flight { reply: Reply::Body(body), .. }) = &self.flight
            && body.ahead() > 1
        {
            // Where a stream has gone, its end is told.
            let _ = calls.relay(self.stream, to, Some(body.ahead() - 1));
        }
    }

    /// So much of it has gone.
    pub(super) fn relayed(&mut self, count: u64, done: bool, up: &mut Vec<BackendEvent>) {
        if let Some(flight) = &mut self.flight
            && let Reply::Body(body) = &mut flight.reply
        {
            body.passed(count.saturating_sub(u64::from(active(Plant::Miscount))));
            up.push(BackendEvent::Spliced { id: flight.id, count, done });
        }
    }

    /// The server sends no more.
    pub(super) fn ended(&mut self) -> Step {
        let Some(flight) = &mut self.flight else { return Step::More };
        match &mut flight.reply {
            Reply::Head(_) => Step::Fault(Fault::Ended),
            Reply::Body(body) => match body.end() {
                Ok(()) => Step::whole(false),
                Err(_) => Step::Fault(Fault::Ended),
            },
            Reply::Switched => {
                flight.said_all = true;
                Step::SaidAll(flight.id)
            }
        }
    }
}

fn read_head(
    scan: &mut HeadScan,
    data: &mut Data<'_>,
    meta: RequestMeta,
    limits: &Limits,
) -> Result<Option<Carried>, Refusal> {
    let Some(found) = scan.next(data.bytes(), limits)? else { return Ok(None) };
    let asked = Asked {
        method: if meta.expects == ResponseKind::HeadOnly { Method::Head } else { Method::Get },
        upgrades: match meta.expects {
            ResponseKind::Switch(upgrades) => upgrades,
            ResponseKind::Reply | ResponseKind::HeadOnly => Upgrades::default(),
        },
    };
    let head = Carried::read(&data.bytes()[..found.head.end], &found, asked, limits);
    data.consume(found.head.end);
    head.map(Some)
}
