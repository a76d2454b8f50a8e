//! Records that are stored: the body of a POST is one, and its acknowledgement the reply.

use std::sync::Arc;

use event::Calls;
use exchange::{Cause, Outcome, Phase};
use wire::http1::{Answer, Method, RequestHead};

use super::objects::Gathering;
use super::{Asker, Dialogue, Ending, Input, Move, TEXT, tell};
use crate::core::Core;
use crate::crossing::Rejected;
use crate::plan::HttpPlan;
use crate::routing::RouteId;
use crate::transport::Transport;

const NOT_STORED: &str = "only what is POSTed is stored here";

impl Dialogue {
    /// Takes the record that is to be stored.
    pub(super) fn ask_to_store(
        &mut self,
        (pool, route): (usize, RouteId),
        plan: &Arc<HttpPlan>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: &RequestHead,
        core: &mut Core,
    ) {
        if head.method() != Method::Post {
            return self.answer_unstored(route, transport, calls, head, core);
        }
        let waits = head.expects_continue;
        let gathering = Gathering::of_record((pool, route), plan, transport.peer(), head);
        self.begin_gathering(gathering, waits, transport, calls, core);
    }

    /// Answers a request with another method. The connection goes on where no body is to come.
    fn answer_unstored(
        &mut self,
        route: RouteId,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: &RequestHead,
        core: &mut Core,
    ) {
        let told = Rejected { status: 405, reason: "" };
        self.begin_refused(transport, calls, told, core);
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, NOT_STORED);
        core.refused_at_receipt(transport.listener().pool, transport.source(), &outcome);
        let body = format!("{NOT_STORED}\n");
        let keep_alive = head.connection.keep_alive && !head.body.is_some() && !self.is_last(core);
        let answer = Answer {
            status: 405,
            content_type: TEXT,
            lines: b"Allow: POST\r\n",
            body: body.as_bytes(),
            keep_alive,
        };
        let asker = Asker { method: head.method(), version: head.version, route };
        tell(&answer, asker, transport, calls, core);
        if !keep_alive {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::Said;
        }
    }
}
