//! How to treat a client half-close over HTTP.
//!
//! A half-close looks the same whether the client has closed its socket or still reads. With `half_close = "keep"` a
//! complete request is answered. With `"left"` a request is abandoned unless its reply has begun, even if more bytes
//! follow it. A rejection that was already decided is sent in both cases.

use exchange::Cause;
use wire::http1::Refusal;

use super::{Ending, HttpExchange, Input, Move, Output};
use crate::context::SessionContext;
use crate::transport::Transport;

impl HttpExchange {
    /// Handles the half-close. `true`: the connection must be closed, because its reply has begun and will not be
    /// completed.
    pub(super) fn handle_eof(
        &mut self,
        transport: &Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let keeps = transport.listener().keeps_half_closed;
        self.refusing = true;
        self.half_closed = true;
        match (&self.input, &self.asked) {
            (Input::Ended, _) => return false,
            (Input::Whole, Some(_)) if keeps => return false,
            // Each direction of a tunnel ends separately.
            (Input::Switched, Some(asked)) => {
                cx.requests.pass_end(asked.request);
                return false;
            }
            (_, Some(asked)) if asked.output != Output::None => return true,
            // If the client is paused, more of the body may be unread.
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
        self.ending = Ending::LocalReply;
        self.unwatch(transport, cx.io);
        false
    }
}
