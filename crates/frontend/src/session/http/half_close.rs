//! What the end of a client's bytes means over HTTP.
//!
//! A `close` looks like it, and so does a client that has said all and reads on. With
//! `half_close = "keep"` what was asked for whole is answered; with `"left"` what a worker has not
//! begun to answer is given up, also when more was sent behind it. What was decided before is told in
//! both cases.

use event::Calls;
use exchange::Cause;
use wire::http1::Refusal;

use super::{Ending, HttpExchange, Input, Move, Output};
use crate::session::SessionContext;
use crate::transport::Transport;

impl HttpExchange {
    /// The client sends no more. True when it is to be cut off: its reply has begun and will not
    /// come to its end.
    pub(super) fn handle_eof(
        &mut self,
        transport: &Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) -> bool {
        let keeps = transport.listener().keeps_half_closed;
        self.refusing = true;
        self.half_closed = true;
        match (&self.input, &self.asked) {
            (Input::Ended, _) => return false,
            (Input::Whole, Some(_)) if keeps => return false,
            // Each direction of a tunnel ends by itself.
            (Input::Switched, Some(asked)) => {
                cx.requests.pass_end(asked.request);
                return false;
            }
            (_, Some(asked)) if asked.output != Output::None => return true,
            // More of it may be there while it is not read.
            (Input::Body(_) | Input::BufferedBody(_), _) if !transport.is_paused() => {
                cx.requests.rejects().count_request(Refusal::Truncated as usize);
            }
            _ => {}
        }
        self.end_gathering(transport, Cause::Left, cx);
        if let Some(asked) = self.asked.take() {
            cx.requests.abandon(asked.request, Cause::Left);
        }
        self.step(Move::End, Input::Ended);
        self.ending = Ending::Said;
        self.unwatch(transport, calls);
        false
    }
}
