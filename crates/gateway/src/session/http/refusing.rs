//! Requests that get no further than their session.

use event::Calls;
use exchange::{Cause, Outcome, Phase};
use wire::http1::{Answer, BodyKind, Method, Refusal, RequestHead, Version, write_answer};

use super::{Dialogue, Ending, Input, Output, Told, write_outcome};
use crate::core::Core;
use crate::transport::Transport;

impl Dialogue {
    /// A request is answered without a worker. The connection goes on where no body is to come.
    pub(super) fn refuse_whole(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: RequestHead,
        outcome: &Outcome,
        core: &mut Core,
    ) {
        core.refused_at_receipt(transport.listener().pool, transport.peer(), outcome);
        let whole = matches!(head.body, BodyKind::None);
        let keep = head.connection.keep_alive && whole && !self.refusing;
        let mut out = std::mem::take(&mut core.scratch);
        out.clear();
        write_outcome(outcome, Told::TEXT, head.method(), head.version, keep, &mut out);
        transport.send_bytes(calls, &out);
        core.scratch = out;
        head.recycle();
        if !keep {
            self.input = Input::Ended;
            self.ending = Ending::Said;
        }
    }

    /// What broke a rule is answered, unless its reply has begun, and the connection ends.
    pub(super) fn refuse(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        refusal: Refusal,
        core: &mut Core,
    ) {
        core.rejects.count_request(refusal);
        self.begin_refused(transport, refusal.status(), core);
        let text = format!("{}: {}", refusal.word(), refusal.text());
        let outcome = Outcome::ended(Cause::Malformed, Phase::Receive, &text);
        core.refused_at_receipt(transport.listener().pool, transport.peer(), &outcome);
        self.refuse_with(transport, calls, refusal.status(), &text, core);
    }

    /// A request that did not get so far as to be submitted has its line in the access log too.
    pub(super) fn begin_refused(&self, transport: &Transport, status: u16, core: &mut Core) {
        if self.asked.is_none() && core.logbook.pending().is_none() {
            core.logbook.begin(transport.listener());
        }
        if let Some(trail) = core.logbook.pending() {
            trail.status = status;
        }
    }

    pub(super) fn refuse_with(
        &mut self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        status: u16,
        text: &str,
        core: &mut Core,
    ) {
        let asked = self.asked.take();
        if let Some(asked) = &asked {
            core.abandon(asked.request, Cause::Malformed);
        }
        let cut = asked.as_ref().is_some_and(|asked| asked.open_ended);
        let silent = asked.as_ref().is_some_and(|asked| asked.output != Output::None);
        if !silent {
            let method = asked.map_or(Method::Get, |asked| asked.method);
            let mut out = std::mem::take(&mut core.scratch);
            out.clear();
            let body = format!("{text}\n");
            let answer = Answer {
                status,
                content_type: "text/plain; charset=utf-8",
                lines: if status == 503 { b"Retry-After: 1\r\n" } else { b"" },
                body: body.as_bytes(),
                keep_alive: false,
            };
            write_answer(&answer, method, Version::Http11, &mut out);
            transport.send_bytes(calls, &out);
            core.scratch = out;
        }
        self.input = Input::Ended;
        self.ending = if cut { Ending::CutOff } else { Ending::Said };
        self.unwatch(transport, calls);
        transport.resume(calls);
    }
}
