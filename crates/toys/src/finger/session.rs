//! One client of finger.
//!
//! ```text
//!   Line ──a line──▶ Asked ──its outcome──▶ Over ──all sent──▶ the connection ends
//!    └──too long, too slow, forwarded, drain──▶ Over
//!                     Asked ──a failure after parts──▶ Broken ──▶ reset: the text is incomplete
//! ```

use std::sync::Arc;

use event::Data;
use exchange::{Cause, Outcome, Phase, RequestId, Slice};
use flow::client::Client;
use flow::ids::SessionId;
use flow::reply_event::ReplyEvent;
use flow::request_meta::RequestMeta;
use frontend::protocol::{Protocol, ProtocolConfig, Received};
use frontend::session::SessionContext;
use frontend::transport::Transport;
use wire::{ErrorId, Framing, Marks, write_reply};

use super::config::FingerConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its line is incomplete.
    Line,
    /// The request is in flight at a worker, or is queued.
    Asked(RequestId),
    /// Everything was sent to the stream.
    Over,
    /// The worker failed after a part of its text was sent.
    Broken,
}

#[derive(Debug)]
struct Finger {
    config: Arc<FingerConfig>,
    id: SessionId,
    state: State,
    /// Whether a part of the line has arrived.
    has_begun: bool,
    /// The number of bytes of the reply that have arrived.
    received: usize,
    /// Whether the last byte that was sent ended a line.
    is_at_line_start: bool,
    /// Whether the worker was paused.
    is_paused: bool,
}

impl ProtocolConfig for FingerConfig {
    fn open(
        self: Arc<Self>,
        id: SessionId,
        _transport: &mut Transport,
        _cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol> {
        Box::new(Finger {
            config: self,
            id,
            state: State::Line,
            has_begun: false,
            received: 0,
            is_at_line_start: true,
            is_paused: false,
        })
    }

    fn write_refusal(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        let mut line = Vec::new();
        let refused = write_reply(Framing::Raw, Marks::Plain, outcome, ErrorId::Unknown, &mut line);
        debug_assert!(refused.is_ok(), "an ending can always be carried");
        write_text(&line, out);
    }
}

/// Writes a text with CR LF at the end of each line (RFC 1288 §2.2).
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text.iter().filter(|byte| **byte != b'\r') {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
}

impl Finger {
    fn send(&mut self, transport: &mut Transport, text: &[u8], cx: &mut SessionContext<'_, '_>) {
        let mut out = cx.scratch.take();
        write_text(text, &mut out);
        if let Some(&last) = out.last() {
            self.is_at_line_start = last == b'\n';
        }
        transport.send_bytes(cx.io, &out);
        cx.scratch.give(out);
    }

    /// Submits the line.
    fn ask(&mut self, transport: &mut Transport, line: &[u8], cx: &mut SessionContext<'_, '_>) {
        transport.disarm_read(cx.io);
        if line.contains(&b'@') {
            return self.refuse(transport, Cause::Record, "queries are not forwarded", cx);
        }
        cx.entry = cx.requests.access_log().begin(transport.listener().logged.as_ref());
        let allowed = cx.address_limits.request(cx.requests.now(), transport.entry());
        if let Err(outcome) = allowed {
            return self.reject_with(transport, &outcome, cx);
        }
        let client = Client::Session { session: self.id, sequence: 0 };
        let request = (Slice::copy_of(line).into(), RequestMeta::default());
        let pool = transport.listener().pool;
        let entry = cx.entry.take();
        let request = cx.requests.submit(client, transport.source(), request, pool, entry);
        self.state = State::Asked(request);
    }

    fn refuse(
        &mut self,
        transport: &mut Transport,
        cause: Cause,
        text: &str,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let outcome = Outcome::ended(cause, Phase::Receive, text);
        self.reject_with(transport, &outcome, cx);
    }

    /// Sends an error to the client instead of submitting the request. It is counted and logged.
    fn reject_with(
        &mut self,
        transport: &mut Transport,
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let listener = transport.listener();
        if cx.entry.is_none() {
            cx.entry = cx.requests.access_log().begin(listener.logged.as_ref());
        }
        let entry = cx.entry.take();
        cx.requests.refused_at_receipt(listener.pool, transport.source(), outcome, entry);
        self.end(transport, outcome, cx);
    }

    /// Writes an outcome that is not a reply, and ends the session.
    fn end(
        &mut self,
        transport: &mut Transport,
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let mut out = cx.scratch.take();
        self.config.write_refusal(outcome, &mut out);
        transport.send_bytes(cx.io, &out);
        cx.scratch.give(out);
        transport.disarm_read(cx.io);
        self.state = State::Over;
    }
}

impl Protocol for Finger {
    fn handle_data(
        &mut self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> Received {
        let bytes = data.bytes();
        if self.state != State::Line {
            data.consume(bytes.len());
            return Received::Discarded;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let line = &bytes[..end.unwrap_or(bytes.len())];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_new = !std::mem::replace(&mut self.has_begun, !bytes.is_empty());
        if line.len() > self.config.line_max {
            let text = format!("a line has at most {} bytes", self.config.line_max);
            self.refuse(transport, Cause::TooLong, &text, cx);
        } else if end.is_some() {
            self.ask(transport, line, cx);
        } else {
            if let Some(timeout) = self.config.read_timeout.filter(|_| is_new && self.has_begun) {
                transport.arm_read(cx.io, timeout);
            }
            return Received::of(self.has_begun);
        }
        data.consume(bytes.len());
        Received::Request
    }

    fn deliver(
        &mut self,
        transport: &mut Transport,
        _sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if !matches!(self.state, State::Asked(_)) {
            return;
        }
        match reply_event {
            ReplyEvent::Part(part) => {
                self.received = self.received.saturating_add(part.len());
                self.send(transport, &part, cx);
            }
            ReplyEvent::End(Outcome::Reply(text) | Outcome::Fallback(_, text)) => {
                self.send(transport, &text, cx);
                if !self.is_at_line_start {
                    transport.send_bytes(cx.io, b"\r\n");
                }
                self.state = State::Over;
            }
            ReplyEvent::End(Outcome::Ended(..)) if self.received > 0 => self.state = State::Broken,
            ReplyEvent::End(outcome) => self.end(transport, &outcome, cx),
            // These events concern HTTP and clients that send further requests.
            _ => {}
        }
    }

    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        match self.state {
            State::Line => {}
            State::Asked(request) => {
                let hold = transport.holds_back(cx.io, self.received);
                if std::mem::replace(&mut self.is_paused, hold) != hold {
                    cx.requests.pause_reply(request, hold);
                }
            }
            State::Over => transport.finish(cx.io, None),
            State::Broken => transport.reset(cx.io),
        }
    }

    /// Does nothing, because bytes are sent when they arrive.
    fn flush_all(&mut self, _transport: &mut Transport, _cx: &mut SessionContext<'_, '_>) -> bool {
        self.would_look_whole(0)
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn is_owed(&self) -> bool {
        matches!(self.state, State::Asked(_))
    }

    fn each_abandoned(&self, each: &mut dyn FnMut(RequestId)) {
        if let State::Asked(request) = self.state {
            each(request);
        }
    }

    fn handle_slow(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if self.state == State::Line {
            let text = "a line that was begun did not end in time";
            self.refuse(transport, Cause::Incomplete, text, cx);
        }
    }

    /// Handles the end of the input. If the line is incomplete, there is no request.
    fn handle_eof(&mut self, transport: &mut Transport, _cx: &mut SessionContext<'_, '_>) -> bool {
        self.state == State::Line || !transport.listener().keeps_half_closed
    }

    /// Rejects a client that has not sent its line yet.
    fn begin_drain(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if self.state == State::Line {
            self.refuse(transport, Cause::Draining, "the daemon is about to end", cx);
            transport.finish(cx.io, None);
        }
    }

    /// Whether a client would take the end of the connection for the end of the text.
    fn would_look_whole(&self, queued: usize) -> bool {
        match self.state {
            State::Line => false,
            State::Asked(_) => self.received > 0,
            State::Over => queued > 0,
            State::Broken => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_text_ends_with_cr_lf() {
        let mut out = Vec::new();
        write_text(b"one\ntwo\r\n\nthree", &mut out);
        assert_eq!(out, b"one\r\ntwo\r\n\r\nthree");
    }
}
