//! Questions: requests whose worker takes the parameters of a target and gives a body.
//!
//! A reply that is small comes whole, with its length. Of a larger one parts come as the worker makes
//! them, behind a head of ours; what goes wrong then can only be told by ending the connection.

use event::Calls;
use exchange::{Cause, Outcome, Phase, Slice};
use wire::http1::{Answer, Body, Kind, Limits, Method, RequestHead, chunk_head, write_open_answer};

use super::course::Asking;
use super::rejection::Why;
use super::told::{edits, open_lines};
use super::{Asked, Dialogue, Ending, Input, Move, Output, Sending, TEXT, Told, tell};
use crate::crossing::Rejected;
use crate::exchanges::Client;
use crate::form::Form;
use crate::question::NoQuestion;
use crate::session::SessionContext;
use crate::transport::Transport;

impl Dialogue {
    /// Submits a question.
    pub(super) fn ask_question(
        &mut self,
        asking: Asking<'_>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: &RequestHead,
        cx: &mut SessionContext<'_>,
    ) {
        let Asking { question, pool, route, target } = asking;
        if head.body.is_some() {
            let text = "a question has no body";
            let why = Why::of(Cause::Malformed, text);
            return self.refuse_with(transport, calls, (413, route), why, cx);
        }
        let (method, version) = (head.method(), head.version);
        let keep = head.connection.keep_alive && !self.is_last(cx.requests);
        let mut out = cx.scratch.take();
        let mut target =
            target.unwrap_or_else(|| head.path_and_query()).splitn(2, |&byte| byte == b'?');
        let (path, query) = (target.next().unwrap_or_default(), target.next());
        let read = question.record(method, path, query, &mut out);
        let record = Slice::copy_of(&out);
        cx.scratch.give(out);
        self.number = self.number.wrapping_add(1);
        let mut asked = Asked {
            // Nobody's, until it is submitted.
            request: exchange::RequestId::NONE,
            method,
            version,
            output: Output::None,
            route,
            keep,
            open_ended: false,
            wanted: false,
            waits: false,
            holding: false,
            came: 0,
            said_all: false,
            relayed_from: None,
            page: None,
            chunks: None,
            told: Told { status: 200, content_type: question.content_type },
        };
        match read {
            Ok(()) => {
                self.step(Move::Ask, Input::Whole);
                let client = Client::Session { session: self.id, sequence: u64::from(self.number) };
                // Of a reply to HEAD nothing is sent but its length, which takes all of it.
                let form = Form { streams: method == Method::Get, ..Form::default() };
                let source = transport.source();
                asked.request = cx.requests.submit(
                    client,
                    source,
                    (record.into(), form),
                    pool,
                    cx.entry.take(),
                );
                self.asked = Some(asked);
            }
            Err(why) => self.answer_none(transport, calls, &asked, &why, cx),
        }
    }

    /// Answers what is no question; the connection goes on.
    fn answer_none(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        asked: &Asked,
        why: &NoQuestion,
        cx: &mut SessionContext<'_>,
    ) {
        let told = Rejected { status: why.status(), reason: "" };
        self.begin_refused(transport, calls, told, cx);
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, why.text());
        cx.requests.refused_at_receipt(
            transport.listener().pool,
            transport.source(),
            &outcome,
            cx.entry.take(),
        );
        let body = format!("{}\n", why.text());
        let answer = Answer {
            status: why.status(),
            content_type: TEXT,
            lines: if *why == NoQuestion::Method { b"Allow: GET, HEAD\r\n" } else { b"" },
            body: body.as_bytes(),
            keep_alive: asked.keep,
        };
        tell(&answer, asked.asker(), transport, calls, cx);
        if !asked.keep {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::Said;
        }
    }
}

impl Asked {
    /// Writes the head of a reply whose first part has come.
    pub(super) fn begin(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        let date = cx.requests.date_line();
        let mut out = cx.scratch.take();
        let lines = open_lines(self.told.content_type, edits(transport, self.route), &date);
        let sending = write_open_answer(&lines, self.version, &mut self.keep, &mut out);
        transport.send_bytes(calls, &out);
        cx.scratch.give(out);
        self.output = Output::begun(self.method, sending);
        self.open_ended = matches!(self.output, Output::Begun(Sending::Verbatim | Sending::Data));
    }

    /// Sends a part of the body on, as the client takes it.
    pub(super) fn send_part(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        part: Slice,
    ) {
        self.came = self.came.saturating_add(part.len());
        match self.output {
            Output::Begun(Sending::Verbatim) => transport.send(calls, part),
            Output::Begun(Sending::Chunked) => {
                let (head, start) = chunk_head(part.len());
                transport.send_bytes(calls, &head[start..]);
                transport.send(calls, part);
                transport.send_bytes(calls, b"\r\n");
            }
            Output::Begun(Sending::Data) => {
                if let Some(chunks) = &mut self.chunks {
                    send_data(chunks, transport, calls, &part);
                }
            }
            Output::None | Output::HeadOnly | Output::Done => {}
        }
    }
}

/// Sends what is data of a part of a body in chunks. The worker has read it by the same rules, so
/// nothing in it can be wrong, and nothing waits for more.
fn send_data(chunks: &mut Body, transport: &mut Transport, calls: &mut Calls<'_>, mut part: &[u8]) {
    while let Ok(Some(span)) = chunks.next(part, &Limits::REPLY) {
        let (bytes, rest) = part.split_at(span.length);
        if span.kind == Kind::Data {
            transport.send_bytes(calls, bytes);
        }
        part = rest;
    }
}
