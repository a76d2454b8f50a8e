//! A client that sends framed messages: each frame is a request, and its reply is one frame or, in parts, several.
//!
//! Replies leave in the order of the requests; where frames are JSON-RPC messages, as they come. A
//! client with `in_flight_max` requests in flight is paused, not refused, and so are clients while the
//! queue of their pool is full (`engine/paused.rs`). One that does not take its
//! output is paused too, and cut when it takes nothing for `send_timeout`.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data};
use exchange::{Cause, Outcome, Phase, PoolId, RequestId, Slice};
use wire::jsonrpc::{self, Kind, Message};
use wire::{Decoder, HttpStart, Last, Piece, write_reply};

use super::reply_queue::{Limits, Name, ReplyQueue};
use crate::context::SessionContext;
use crate::listener::FramesConfig;
use crate::protocol::{Protocol, ProtocolConfig};
use crate::transport::Transport;
use flow::client::Client;
use flow::ids::SessionId;
use flow::permit::Permit;
use flow::request_meta::RequestMeta;
use flow::requests::Requests;

mod events;
mod pace;
mod too_long;
mod writing;
mod wrong_protocol;

/// How often to check whether output is sent before a connection is reset.
const RESET_LOOK: Duration = Duration::from_millis(10);

/// Why a message is rejected that a shared program might ignore.
const NOT_VERSION_2: &str = "the message has no \"jsonrpc\":\"2.0\"";

/// How input is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Frames become requests.
    Open,
    /// Frames are rejected, because the daemon drains.
    Refusing,
    /// The input has ended.
    Ended,
}

/// How the connection ends after all replies are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Clean,
    /// The client's own program has exited with code 0: requests that end after that get no reply.
    Silent,
    /// A failure that the client sees as a reset.
    Reset,
}

#[derive(Debug)]
struct Frames {
    id: SessionId,
    pool: PoolId,
    config: Arc<FramesConfig>,
    decoder: Decoder,
    /// Looks at the first bytes, until it is certain that they are neither HTTP nor TLS.
    start: Option<HttpStart>,
    /// The last frame was a first line that was too long, and may have been the beginning of an HTTP request.
    follows_long_line: bool,
    /// It is closed, for it speaks something else.
    is_wrong_protocol: bool,
    input: Input,
    ending: Ending,
    reply_queue: ReplyQueue,
    /// Replies are rows, one per line.
    rows: bool,
    /// A row of the current reply could not be written, and the client has received its end.
    broken: bool,
    /// A worker has answered a request, or is this client's own.
    answered: bool,
    /// Admission to the pool.
    permit: Permit,
    /// A frame has begun. Its deadline is set, if there is one.
    begun: bool,
    /// The client has closed both directions.
    is_gone: bool,
    /// The request whose worker is paused.
    holding: Option<RequestId>,
    /// The pool of its own program, whose output is paused.
    hushing: Option<PoolId>,
}

impl ProtocolConfig for FramesConfig {
    fn open(
        self: Arc<Self>,
        id: SessionId,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol> {
        Box::new(Frames::new(id, transport.listener().pool, self, cx.requests))
    }

    fn write_refusal(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        if self.resets {
            return;
        }
        let refused = write_reply(self.framing, self.marks, outcome, wire::ErrorId::Unknown, out);
        debug_assert!(refused.is_ok(), "an ending can always be carried");
    }
}

impl Frames {
    fn new(
        id: SessionId,
        pool: PoolId,
        config: Arc<FramesConfig>,
        requests: &dyn Requests,
    ) -> Self {
        let in_order = !config.framing.is_json();
        let rows = in_order && requests.replies_lines(pool);
        let decoder = Decoder::new(config.framing, config.frame_max, config.over);
        Self {
            decoder: if in_order { decoder } else { decoder.skimming() },
            reply_queue: ReplyQueue::new(in_order, rows),
            rows,
            start: HttpStart::new(config.framing),
            follows_long_line: false,
            is_wrong_protocol: false,
            broken: false,
            id,
            pool,
            config,
            input: Input::Open,
            ending: Ending::Clean,
            answered: false,
            permit: Permit::default(),
            begun: false,
            is_gone: false,
            holding: None,
            hushing: None,
        }
    }

    fn read(
        &mut self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let bytes = data.bytes();
        if self.input == Input::Ended {
            // The rest after a frame that was malformed or not complete in time.
            self.return_grant(cx);
            return data.consume(bytes.len());
        }
        if self.start.is_some() && self.refuses_start(transport, bytes, cx) {
            self.return_grant(cx);
            return data.consume(bytes.len());
        }
        let (mut from, mut found) = (0, false);
        while self.input != Input::Ended
            && !self.is_full(cx.requests)
            && self.may_send(bytes.len() - from, cx)
        {
            let Some(piece) = self.decoder.next(bytes, &mut from) else { break };
            self.handle_piece(transport, piece, bytes, cx);
            found = true;
        }
        let shown = bytes.len();
        let consumed = if self.input == Input::Ended {
            shown
        } else if self.is_full(cx.requests) {
            from
        } else if data.is_last() {
            self.handle_last(transport, &bytes[from..], cx);
            shown
        } else {
            self.decoder.consume(shown, from)
        };
        data.consume(consumed);
        self.return_grant(cx);
        if self.is_full(cx.requests) || transport.over_high_water(cx.io) {
            transport.pause(cx.io);
            // The client may have left before; it is not reported again.
            if self.has_left(transport) {
                return transport.reset(cx.io);
            }
        }
        self.watch_begun(transport, cx.io, shown - consumed, found);
    }

    /// Handles the remaining bytes of a client that has ended its input.
    fn handle_last(&mut self, transport: &Transport, rest: &[u8], cx: &mut SessionContext<'_, '_>) {
        self.finish_too_long(transport, cx);
        let incomplete = match self.decoder.finish(rest) {
            None => return,
            Some(Last::Frame(range)) => return self.handle_frame(transport, range, rest, cx),
            Some(Last::Unterminated(range)) if self.config.accepts_last => {
                return self.handle_frame(transport, range, rest, cx);
            }
            Some(Last::TooLong) => {
                let is_json = self.config.framing.is_json();
                let name = if is_json { Name::of(jsonrpc::skim(rest)) } else { Name::Unknown };
                return self.refuse_too_long(transport, name, cx);
            }
            Some(Last::Unterminated(_)) if self.config.framing == wire::Framing::Lines => {
                "the last line has no newline at its end"
            }
            Some(Last::Unterminated(_) | Last::Partial) => "the last request came in part only",
        };
        let outcome = Outcome::ended(Cause::Incomplete, Phase::Receive, incomplete);
        self.refuse(transport, outcome, Name::Unknown, cx);
    }

    fn handle_piece(
        &mut self,
        transport: &Transport,
        piece: Piece,
        bytes: &[u8],
        cx: &mut SessionContext<'_, '_>,
    ) {
        let is_too_long =
            matches!(piece, Piece::TooLong { .. } | Piece::Broken(wire::Fault::TooLong));
        if is_too_long && self.refuses_long_http(transport, bytes, cx) {
            return;
        }
        match piece {
            Piece::Frame(range) => self.handle_frame(transport, range, bytes, cx),
            // The next piece shows what it is.
            Piece::TooLong { .. } if self.config.framing.is_json() => {}
            Piece::TooLong { .. } => self.refuse_too_long(transport, Name::Unknown, cx),
            Piece::Skimmed(skimmed) => self.refuse_too_long(transport, Name::of(skimmed), cx),
            Piece::Broken(wire::Fault::TooLong) => {
                // The rest after its beginning is not parsed.
                let start = self.decoder.start_of_too_long(bytes);
                let is_json = self.config.framing.is_json();
                let name = if is_json { Name::at_start(start) } else { Name::Unknown };
                self.refuse_too_long(transport, name, cx);
                self.input = Input::Ended;
            }
            Piece::Broken(fault) => {
                // Nothing after this can be parsed. The client receives one error.
                let outcome = Outcome::ended(Cause::Record, Phase::Receive, fault.message());
                self.refuse(transport, outcome, Name::Unknown, cx);
                self.input = Input::Ended;
            }
        }
    }

    fn handle_frame(
        &mut self,
        transport: &Transport,
        range: Range<usize>,
        bytes: &[u8],
        cx: &mut SessionContext<'_, '_>,
    ) {
        let frame = &bytes[range];
        if self.follows_long_line && self.refuses_host(transport, frame, cx) {
            return;
        }
        let name = if self.config.framing.is_json() {
            match jsonrpc::scan(frame) {
                Ok(message) => match self.name(frame, &message, cx) {
                    Some(name) if self.is_exit(frame, &message) => {
                        // The last message of an editor (LSP), for its own program.
                        self.input = Input::Ended;
                        name
                    }
                    Some(name)
                        if cx.requests.is_tagged(self.pool) && !message.is_version_2(frame) =>
                    {
                        let outcome = Outcome::ended(Cause::Record, Phase::Receive, NOT_VERSION_2);
                        return self.refuse(transport, outcome, name, cx);
                    }
                    Some(name) => name,
                    None => return,
                },
                Err(fault) => return self.refuse_message(transport, fault, cx),
            }
        } else {
            Name::Unknown
        };
        if self.input == Input::Refusing {
            let text = "the daemon is about to end";
            let outcome = Outcome::ended(Cause::Draining, Phase::Receive, text);
            return self.refuse(transport, outcome, name, cx);
        }
        cx.entry = cx.requests.access_log().begin(transport.listener().logged.as_ref());
        if let Some(log_entry) = &mut cx.entry {
            log_entry.bytes_in = frame.len() as u64;
        }
        if let Err(outcome) = cx.address_limits.request(cx.requests.now(), transport.entry()) {
            return self.refuse(transport, outcome, name, cx);
        }
        let client = Client::Session { session: self.id, sequence: self.reply_queue.next_number() };
        let (source, meta) =
            (transport.source(), RequestMeta { streams: self.rows, ..RequestMeta::default() });
        cx.requests.spend_permit(self.pool, &mut self.permit);
        let id = cx.requests.submit(
            client,
            source,
            (Slice::copy_of(frame).into(), meta),
            self.pool,
            cx.entry.take(),
        );
        self.reply_queue.push(id, name);
    }

    fn is_exit(&self, frame: &[u8], message: &Message) -> bool {
        self.config.framing == wire::Framing::ContentLength
            && message.kind() == Kind::Notification
            && message.is_method(frame, "exit")
    }

    /// The id for the reply to this message; `None`: it is no request.
    fn name(
        &mut self,
        frame: &[u8],
        message: &Message,
        cx: &mut SessionContext<'_, '_>,
    ) -> Option<Name> {
        // The connection's own program receives all messages with their ids.
        let is_own = cx.requests.has_owners(self.pool);
        if is_own && message.kind() != Kind::Request {
            return Some(Name::Nothing);
        }
        if let Some(cancelled) = message.cancels(frame) {
            match self.reply_queue.find(&frame[cancelled.clone()]) {
                Some(request) => {
                    if !message.cancels_with_reply(frame) {
                        self.reply_queue.silence(request);
                    }
                    cx.requests.cancel(request);
                }
                None => cx.requests.count_stray(self.pool),
            }
            return None;
        }
        match message.kind() {
            Kind::Request => {
                message.id.clone().map(|place| Name::Id(Slice::copy_of(&frame[place])))
            }
            Kind::Notification => Some(Name::Nothing),
            // Requests of programs are not forwarded to clients, so this reply belongs to none.
            Kind::Response => None,
        }
    }

    fn refuse(
        &mut self,
        transport: &Transport,
        outcome: Outcome,
        name: Name,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if cx.entry.is_none() {
            cx.entry = cx.requests.access_log().begin(transport.listener().logged.as_ref());
        }
        cx.requests.refused_at_receipt(self.pool, transport.source(), &outcome, cx.entry.take());
        self.reply_queue.push_ready(outcome, name);
    }

    /// Whether the client was rejected just now because it speaks another protocol. True once.
    pub(super) const fn take_wrong_protocol(&mut self) -> bool {
        std::mem::replace(&mut self.is_wrong_protocol, false)
    }

    /// The limits of the queue of replies.
    fn limits(&self) -> Limits {
        Limits { held_max: self.config.reply_held_max, send_max: self.config.send_max }
    }

    /// Resets the connection after the output before the failure is sent.
    fn reset(&self, transport: &mut Transport, io: &mut Context<'_>) {
        if transport.queued(io) == 0 {
            transport.reset(io);
        } else {
            transport.arm_read(io, RESET_LOOK);
        }
    }

    fn write_below(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        scratch: &mut Vec<u8>,
        high: usize,
    ) {
        scratch.clear();
        let queued = transport.queued(io);
        let broken = transport.is_broken(io);
        while queued + scratch.len() <= high {
            let Some(ready) = self.reply_queue.pop_ready() else { break };
            self.write(ready, scratch);
            if broken {
                // It would be dropped, and no `Drained` event would follow.
                scratch.clear();
            }
        }
        transport.send_bytes(io, scratch);
    }

    /// Pauses the worker whose parts the client does not read, if its protocol allows it.
    fn pause_reply(&mut self, transport: &Transport, cx: &mut SessionContext<'_, '_>) {
        let clogged = transport.over_high_water(cx.io);
        // All output of its own program is for this client.
        let hush = (clogged && self.reply_queue.has_asides()).then_some(self.pool);
        if hush != self.hushing {
            if let Some(before) = std::mem::replace(&mut self.hushing, hush) {
                cx.requests.pause_program(before, self.id, false);
            }
            if let Some(now) = hush {
                cx.requests.pause_program(now, self.id, true);
            }
        }
        let streaming = self.reply_queue.streaming();
        let wanted = streaming.filter(|(_, came)| transport.holds_back(cx.io, *came));
        let wanted = wanted.map(|(request, _)| request);
        if wanted != self.holding {
            if let Some(before) = self.holding {
                cx.requests.pause_reply(before, false);
            }
            if let Some(now) = wanted {
                cx.requests.pause_reply(now, true);
            }
            self.holding = wanted;
        }
    }
}
