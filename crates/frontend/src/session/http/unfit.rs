//! Requests that no worker of their pool accepts. They are rejected before they are submitted.

use exchange::{Cause, Outcome, Phase};
use wire::http1::{Answer, RequestHead};

use super::{Ending, HttpExchange, Input, Move, Requester, TEXT, send_local_reply};
use crate::context::SessionContext;
use crate::routing::RouteId;
use crate::transport::Transport;
use flow::rejected::Rejected;
use flow::request_shape::Unfit;

impl HttpExchange {
    /// Rejects such a request. The connection remains open if the request has no body.
    pub(super) fn answer_unfit(
        &mut self,
        why: &Unfit,
        route: RouteId,
        transport: &mut Transport,
        head: &RequestHead,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let told = Rejected { status: why.status, reason: "" };
        self.begin_refused(transport, told, cx);
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, why.text);
        let (pool, source) = (transport.listener().pool, transport.source());
        cx.requests.refused_at_receipt(pool, source, &outcome, cx.entry.take());
        let body = format!("{}\n", why.text);
        let keep_alive =
            head.connection.keep_alive && !head.body.is_some() && !self.is_last(cx.requests);
        let answer = Answer {
            status: why.status,
            content_type: TEXT,
            lines: why.lines,
            body: body.as_bytes(),
            keep_alive,
        };
        let requester = Requester { method: head.method(), version: head.version, route };
        send_local_reply(&answer, requester, transport, cx);
        if !keep_alive {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::LocalReply;
        }
    }
}
