//! TRACE and OPTIONS requests with `Max-Forwards: 0`, which are answered here (RFC 9110 §7.6.2). Their route was found
//! and has admitted them.

use exchange::{Outcome, Slice};
use wire::http1::{Answer, Method, RequestHead};

use super::{Ending, HttpExchange, Input, Move, Requester, send_local_reply};
use crate::context::SessionContext;
use crate::routing::RouteId;
use crate::transport::Transport;

impl HttpExchange {
    /// Answers a request with `Max-Forwards: 0`, and decrements the value of another one. `true`: the request was
    /// answered.
    pub(super) fn stops_here(
        &mut self,
        route: RouteId,
        transport: &mut Transport,
        head: &mut RequestHead,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let counted = match head.method() {
            Method::Trace | Method::Options => head.decrement_max_forwards(),
            _ => return false,
        };
        match counted {
            Ok(true) => return false,
            Ok(false) => self.answer_last_hop(route, transport, head, cx),
            Err(refusal) => self.refuse_on(route, transport, refusal, cx),
        }
        true
    }

    /// Answers as the final recipient: TRACE with the received request, OPTIONS with an empty body. The body of the
    /// request is not read.
    fn answer_last_hop(
        &mut self,
        route: RouteId,
        transport: &mut Transport,
        head: &RequestHead,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if let Some(log_entry) = &mut cx.entry {
            log_entry.status = 200;
        }
        let outcome = Outcome::Reply(Slice::default());
        cx.requests.refused_at_receipt(
            transport.listener().pool,
            transport.source(),
            &outcome,
            cx.entry.take(),
        );
        let mut body = Vec::new();
        if head.method() == Method::Trace {
            head.write_trace(&mut body);
        }
        let keep_alive =
            head.connection.keep_alive && !head.body.is_some() && !self.is_last(cx.requests);
        let answer = Answer {
            status: 200,
            content_type: "message/http",
            lines: b"",
            body: &body,
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
