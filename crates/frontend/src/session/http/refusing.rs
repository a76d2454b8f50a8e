//! Requests that are rejected before they are submitted.

use exchange::{Cause, Outcome, Phase};
use wire::http1::{Answer, BodyKind, Refusal, RequestHead};

use super::rejection::Why;
use super::{
    Ending, HttpExchange, Input, LocalReply, Move, Output, RETRY, ReplyForm, Requester, TEXT,
    send_local_reply,
};
use crate::context::SessionContext;
use crate::routing::RouteId;
use crate::transport::Transport;
use flow::rejected::Rejected;

impl HttpExchange {
    /// Rejects a request. The connection remains open if the request has no body.
    pub(super) fn refuse_whole(
        &mut self,
        transport: &mut Transport,
        head: &RequestHead,
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) {
        cx.requests.refused_at_receipt(
            transport.listener().pool,
            transport.source(),
            outcome,
            cx.entry.take(),
        );
        let whole = matches!(head.body, BodyKind::None);
        let keep = head.connection.keep_alive && whole && !self.is_last(cx.requests);
        let requester =
            Requester { method: head.method(), version: head.version, route: RouteId::REST };
        send_local_reply(
            &LocalReply::of(outcome, ReplyForm::TEXT).answer(keep),
            requester,
            transport,
            cx,
        );
        if !keep {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::LocalReply;
        }
    }

    /// Rejects malformed input, unless its reply has begun, and ends the connection.
    pub(super) fn refuse(
        &mut self,
        transport: &mut Transport,
        refusal: Refusal,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let route = self.route();
        self.refuse_on(route, transport, refusal, cx);
    }

    /// Rejects a request whose route is known and that was not submitted.
    pub(super) fn refuse_on(
        &mut self,
        route: RouteId,
        transport: &mut Transport,
        refusal: Refusal,
        cx: &mut SessionContext<'_, '_>,
    ) {
        cx.requests.rejects().count_request(refusal as usize);
        let text = format!("{}: {}", refusal.as_str(), refusal.message());
        let why = Why { cause: Cause::Malformed, reason: refusal.as_str(), text: &text };
        self.refuse_with(transport, (refusal.status(), route), why, cx);
    }

    /// Whether an incomplete request has begun, which was not submitted.
    pub(super) fn is_begun(&self) -> bool {
        match self.input {
            Input::Head => self.scan.is_begun(),
            Input::BufferedBody(_) => true,
            Input::Body(_) | Input::Whole | Input::Switched | Input::Ended => false,
        }
    }

    /// Rejects an incomplete request, because the daemon stops.
    pub(super) fn refuse_draining(
        &mut self,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let route = self.route();
        self.restore_trail(cx);
        let cause = Cause::Draining;
        let text = format!("{}: {}", cause.as_str(), cause.meaning());
        self.refuse_with(transport, (503, route), Why::of(cause, &text), cx);
    }

    /// Rejects input whose head cannot be parsed. Its access log line contains the received part of its first line.
    pub(super) fn refuse_unread(
        &mut self,
        bytes: &[u8],
        transport: &mut Transport,
        refusal: Refusal,
        cx: &mut SessionContext<'_, '_>,
    ) {
        cx.entry =
            cx.requests.access_log().begin_unread(transport.listener().logged.as_ref(), bytes);
        self.refuse(transport, refusal, cx);
    }

    /// Begins the access log entry of a request that is rejected before it is submitted.
    pub(super) fn begin_refused(
        &self,
        transport: &Transport,
        told: Rejected,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if self.asked.is_none() && cx.entry.is_none() {
            let held = cx.io.held(transport.stream());
            cx.entry =
                cx.requests.access_log().begin_unread(transport.listener().logged.as_ref(), held);
        }
        if let Some(log_entry) = &mut cx.entry {
            (log_entry.status, log_entry.reason) = (told.status, told.reason);
        }
    }

    /// The route of the current request, if it is known.
    pub(super) fn route(&self) -> RouteId {
        match (&self.asked, &self.input) {
            (Some(asked), _) => asked.route,
            (None, Input::BufferedBody(buffered)) => buffered.route(),
            (None, _) => RouteId::REST,
        }
    }

    /// Rejects the current request, unless its reply has begun, and ends the connection. It is counted and logged
    /// once: by its pool, if it was submitted.
    pub(super) fn refuse_with(
        &mut self,
        transport: &mut Transport,
        (status, route): (u16, RouteId),
        why: Why<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let Why { cause, reason, text } = why;
        let told = Rejected { status, reason };
        // Its outcome exists and arrives in this turn. The client and the log receive that one.
        if self.asked.as_ref().is_some_and(|asked| !cx.requests.is_under_way(asked.request)) {
            return;
        }
        let asked = self.asked.take();
        let cut = asked.as_ref().is_some_and(|asked| asked.open_ended);
        let silent = asked.as_ref().is_some_and(|asked| asked.output != Output::None);
        match &asked {
            Some(asked) => {
                let told = Some(told).filter(|_| !silent);
                cx.requests.abandon_answered(asked.request, cause, told, text);
            }
            None => {
                self.begin_refused(transport, told, cx);
                let outcome = Outcome::ended(cause, Phase::Receive, text);
                cx.requests.refused_at_receipt(
                    transport.listener().pool,
                    transport.source(),
                    &outcome,
                    cx.entry.take(),
                );
            }
        }
        if !silent {
            let method = asked.map_or(self.method, |asked| asked.method);
            let body = format!("{text}\n");
            let answer = Answer {
                status,
                content_type: TEXT,
                lines: if status == 503 { RETRY } else { b"" },
                body: body.as_bytes(),
                keep_alive: false,
            };
            send_local_reply(
                &answer,
                Requester { method, route, ..Requester::NOBODY },
                transport,
                cx,
            );
        }
        self.step(Move::End, Input::Ended);
        self.ending = if cut { Ending::CutOff } else { Ending::LocalReply };
        self.unwatch(transport, cx.io);
        transport.resume(cx.io);
    }
}
