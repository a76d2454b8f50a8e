//! Records that are stored: the body of a POST is one, and its acknowledgement the reply.

use std::sync::Arc;

use event::Calls;
use exchange::{Cause, Outcome, Phase};
use wire::http1::{Answer, Method, RequestHead, write_answer};

use super::objects::Gathering;
use super::{Dialogue, Ending, Input, TEXT};
use crate::core::Core;
use crate::plan::HttpPlan;
use crate::transport::Transport;

const NOT_STORED: &str = "only what is POSTed is stored here";

impl Dialogue {
    /// Takes the record that is to be stored.
    pub(super) fn ask_to_store(
        &mut self,
        pool: usize,
        plan: &Arc<HttpPlan>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: RequestHead,
        core: &mut Core,
    ) {
        if head.method() != Method::Post {
            return self.answer_unstored(transport, calls, head, core);
        }
        let waits = head.expects_continue;
        let gathering = Gathering::of_record(pool, plan, head);
        self.begin_gathering(gathering, waits, transport, calls, core);
    }

    /// Answers a request with another method. The connection goes on where no body is to come.
    fn answer_unstored(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: RequestHead,
        core: &mut Core,
    ) {
        self.begin_refused(transport, 405, core);
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, NOT_STORED);
        core.refused_at_receipt(transport.listener().pool, transport.peer(), &outcome);
        let body = format!("{NOT_STORED}\n");
        let keep_alive = head.connection.keep_alive && !head.body.is_some() && !self.refusing;
        let answer = Answer {
            status: 405,
            content_type: TEXT,
            lines: b"Allow: POST\r\n",
            body: body.as_bytes(),
            keep_alive,
        };
        let mut out = std::mem::take(&mut core.scratch);
        out.clear();
        write_answer(&answer, head.method(), head.version, &mut out);
        transport.send_bytes(calls, &out);
        core.scratch = out;
        head.recycle();
        if !keep_alive {
            self.input = Input::Ended;
            self.ending = Ending::Said;
        }
    }
}
