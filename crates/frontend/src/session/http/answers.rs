//! Requests that go to no pool: responses and rejections of routes.

use exchange::{Cause, Outcome, Phase, Slice};
use wire::http1::{Answer, RequestHead};

use super::{Ending, HttpExchange, Input, Move, Requester, TEXT, send_local_reply};
use crate::context::SessionContext;
use crate::routing::{RouteDecision, RouteId, Scratch};
use crate::transport::Transport;

impl HttpExchange {
    /// Answers a request that goes to no pool. If it has a body, the body is not read and the connection ends after the
    /// response.
    pub(super) fn answer(
        &mut self,
        transport: &mut Transport,
        head: &RequestHead,
        way: &RouteDecision<'_>,
        scratch: &Scratch,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let refused = |cause: Cause, said: &str| Outcome::ended(cause, Phase::Receive, said);
        let named = |cause: Cause| {
            let text = format!("{}: {}", cause.as_str(), cause.meaning());
            (refused(cause, cause.meaning()), text)
        };
        let (status, route, (outcome, text)) = match way {
            RouteDecision::Pool { .. } => return,
            RouteDecision::Answer { status, route, .. } => {
                (*status, *route, (Outcome::Reply(Slice::default()), String::new()))
            }
            RouteDecision::Unclear(fault, route) => {
                cx.requests.rejects().count_path(*fault as usize);
                let text = format!("{}: {}", fault.as_str(), fault.message());
                (400, *route, (refused(Cause::Malformed, &text), text))
            }
            RouteDecision::Unauthorized(route) => (401, *route, named(Cause::Unauthorized)),
            RouteDecision::Nowhere => (404, RouteId::REST, named(Cause::NoRoute)),
        };
        if let Some(log_entry) = &mut cx.entry {
            log_entry.status = status;
            if let RouteDecision::Unclear(fault, _) = way {
                log_entry.reason = fault.as_str();
            }
        }
        cx.requests.refused_at_receipt(
            transport.listener().pool,
            transport.source(),
            &outcome,
            cx.entry.take(),
        );
        let text = text + "\n";
        let (content_type, body) = match way {
            RouteDecision::Answer { content_type, body, .. } => (*content_type, *body),
            _ => (TEXT, text.as_bytes()),
        };
        let unclear = matches!(way, RouteDecision::Unclear(..));
        let keep_alive = head.connection.keep_alive
            && !head.body.is_some()
            && !self.is_last(cx.requests)
            && !unclear;
        let lines = scratch.lines();
        let answer = Answer { status, content_type, lines, body, keep_alive };
        let requester = Requester { method: head.method(), version: head.version, route };
        send_local_reply(&answer, requester, transport, cx);
        if !keep_alive {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::LocalReply;
        }
    }
}
