//! Delivery of replies to the client.

use exchange::{Outcome, Slice};
use wire::http1::{Added, Body, BodyKind, Limits, Sending, Version};

use super::local_reply::of_page;
use super::{Ending, HttpExchange, Input, LocalReply, Move, Output, send_local_reply};
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::transport::Transport;
use flow::reply_event::ReplyEvent;
use flow::reply_head::BoxedReplyHead;

/// The maximum size of a body that is copied after its head, in bytes. A longer one is sent without a copy.
const BODY_ALONG_MAX: usize = 1024;

impl HttpExchange {
    /// Handles an event about the current request.
    pub(super) fn deliver(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let Some(asked) = self.asked.as_mut().filter(|_| sequence == u64::from(self.number)) else {
            return;
        };
        match reply_event {
            ReplyEvent::Head(head) => {
                self.deliver_head(config, transport, head, &mut Slice::default(), cx);
            }
            ReplyEvent::Page(page) => asked.page = Some(page),
            ReplyEvent::PlainReply(told) => asked.told = told,
            ReplyEvent::Part(part) => {
                if asked.output == Output::None {
                    asked.begin(transport, cx);
                }
                asked.send_part(transport, cx.io, part);
            }
            ReplyEvent::SpliceOffer(from) => {
                if asked.output == Output::Begun(Sending::Verbatim) {
                    asked.relayed_from = Some(from);
                    transport.expect(cx.io);
                    cx.requests.take_unseen(asked.request, transport.stream());
                }
            }
            ReplyEvent::Spliced(done) => {
                transport.relayed(cx.io);
                asked.relayed_from.take_if(|_| done);
            }
            ReplyEvent::BodyWanted(wanted) => self.handle_flow(config, transport, cx.io, wanted),
            ReplyEvent::ReplyEnd => self.handle_said_all(config, transport, cx.io),
            ReplyEvent::End(outcome) => self.deliver_end(transport, outcome, cx),
            // These occur with frames only.
            ReplyEvent::Unsolicited(..) | ReplyEvent::Finished => {}
        }
    }

    /// Handles a complete reply: its head and its outcome.
    pub(super) fn deliver_whole(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        (sequence, head, mut outcome): (u64, BoxedReplyHead, Outcome),
        cx: &mut SessionContext<'_, '_>,
    ) {
        if self.asked.is_none() || sequence != u64::from(self.number) {
            return head.recycle();
        }
        match &mut outcome {
            Outcome::Reply(body) => {
                self.deliver_head(config, transport, head, body, cx);
            }
            _ => self.deliver_head(config, transport, head, &mut Slice::default(), cx),
        }
        self.deliver_end(transport, outcome, cx);
    }

    /// Sends a head, together with `body` if both are small; `body` is then empty.
    fn deliver_head(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        mut carried: BoxedReplyHead,
        body: &mut Slice,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let is_last = self.is_last(cx.requests);
        let Some(asked) = &mut self.asked else { return carried.recycle() };
        let head = carried.head();
        if head.is_interim() && asked.version == Version::Http10 {
            // An HTTP/1.0 client does not know interim responses.
            return carried.recycle();
        }
        let sending = head.prepare(asked.version);
        if !head.is_interim() {
            let routing = config.routing.as_ref();
            if let Some(way) = routing.and_then(|routing| routing.config(asked.route)) {
                way.reply.apply(&mut head.fields);
            }
            asked.output = Output::begun(asked.method, sending);
            let ends = match asked.output {
                Output::Begun(Sending::Verbatim) => matches!(head.body, BodyKind::UntilEnd),
                Output::Begun(Sending::Data) => true,
                _ => false,
            };
            asked.keep &= !ends && !is_last;
            asked.open_ended = ends;
            if asked.output == Output::Begun(Sending::Data) {
                asked.chunks = Some(Box::new(Body::new(head.body, &Limits::REPLY)));
            }
        }
        if !head.is_interim() && !matches!(self.input, Input::Whole) && head.status != 101 {
            // The connection ends, since the rest of the request would be read as the next one.
            asked.keep = false;
        }
        let told_to_send =
            asked.waits && head.status == 100 && matches!(self.input, Input::Body(_));
        asked.waits &= head.is_interim() && head.status != 100;
        let date = if head.lacks_date() { Some(cx.requests.date_line()) } else { None };
        let added = Added {
            date: date.as_ref().map_or(b"", |date| date),
            via: config.forwarding.via.line(head.version),
        };
        let mut out = cx.scratch.take();
        head.encode(sending, asked.version, asked.keep, added, &mut out);
        let switches = head.status == 101;
        if switches {
            asked.begin_to_talk();
            if self.half_closed {
                cx.requests.pass_end(asked.request);
            }
            transport.resume(cx.io);
        }
        carried.recycle();
        if asked.output == Output::Begun(Sending::Verbatim) && body.len() <= BODY_ALONG_MAX {
            out.extend_from_slice(&std::mem::take(body));
        }
        transport.send_bytes(cx.io, &out);
        cx.scratch.give(out);
        if told_to_send {
            self.watch_anew(config, transport, cx.io);
        }
        if switches {
            self.step(Move::Switch, Input::Switched);
            transport.arm_look(cx.io, self.tunnel_idle(config, transport));
        }
    }

    fn deliver_end(
        &mut self,
        transport: &mut Transport,
        outcome: Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let is_last = self.is_last(cx.requests);
        let Some(asked) = &mut self.asked else { return };
        let whole = matches!(self.input, Input::Whole);
        let is_reply = matches!(outcome, Outcome::Reply(_));
        match (asked.output, outcome) {
            (Output::Begun(sending), Outcome::Reply(last)) => {
                if !last.is_empty() {
                    asked.send_part(transport, cx.io, last);
                }
                if sending == Sending::Chunked {
                    transport.send_bytes(cx.io, b"0\r\n\r\n");
                }
            }
            (Output::HeadOnly, Outcome::Reply(_)) => {}
            // The head was sent. The end of the connection shows that the reply is incomplete.
            (Output::Begun(_) | Output::HeadOnly, Outcome::Ended(..)) => asked.keep = false,
            (_, outcome) => {
                asked.keep &= whole && !is_last;
                let requester = asked.requester();
                match asked.page.take() {
                    Some(page) => {
                        let body = match &outcome {
                            Outcome::Fallback(_, body) => body.clone(),
                            Outcome::Reply(_) | Outcome::Ended(..) => Slice::default(),
                        };
                        send_local_reply(
                            &of_page(&page, &body, asked.keep),
                            requester,
                            transport,
                            cx,
                        );
                    }
                    None => {
                        let said = LocalReply::of(&outcome, asked.told);
                        send_local_reply(&said.answer(asked.keep), requester, transport, cx);
                    }
                }
            }
        }
        asked.output = Output::Done;
        let keep = asked.keep && whole && !self.refusing;
        let ending = match is_reply {
            _ if !asked.open_ended => Ending::LocalReply,
            true => Ending::OpenEnded,
            false => Ending::CutOff,
        };
        self.asked = None;
        if keep {
            self.step(Move::Next, Input::Head);
        } else {
            self.step(Move::End, Input::Ended);
            self.ending = ending;
            self.unwatch(transport, cx.io);
        }
        transport.resume(cx.io);
    }
}
