//! Behind a 101: what both sides say goes on as it comes, and whoever speaks faster than the other
//! listens waits. Each direction ends by itself; the tunnel ends with both.
//!
//! ```text
//!   client ──read while `wanted`──▶ link     the link says when it takes no more, and takes more again
//!   client ◀──while not `holding`── link     the client's output says the same
//! ```

use std::time::Duration;

use event::{Calls, Data};
use exchange::plant::{Plant, active};

use super::{ActiveRequest, HttpExchange, Input};
use crate::listener::HttpConfig;
use crate::session::SessionContext;
use crate::transport::Transport;

impl ActiveRequest {
    /// The server has changed the protocol.
    pub(super) fn begin_to_talk(&mut self) {
        // Nothing was said to the link that it could not take.
        self.wanted = true;
        // The connection's end is all that tells the client that the server has ended in order.
        self.open_ended = !active(Plant::QuietCut);
    }
}

impl HttpExchange {
    /// Passes on what the client says, or leaves it unread until the server takes it.
    pub(super) fn talk(
        &self,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        let length = data.bytes().len();
        match &self.asked {
            Some(asked) if length > 0 && asked.wanted => {
                cx.requests.pass(asked.request, data.take(length), length);
            }
            Some(_) if length > 0 => transport.pause(calls),
            _ => {}
        }
    }

    /// The server says no more; the client may go on, for as long as one may that waits for no reply.
    pub(super) fn handle_said_all(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
    ) {
        let Some(asked) = &mut self.asked else { return };
        asked.said_all = true;
        transport.finish_sending(calls);
        transport.rest(calls);
        transport.arm_look(calls, self.tunnel_idle(plan, transport));
    }

    /// How long neither side may say anything.
    pub(super) fn tunnel_idle(&self, plan: &HttpConfig, transport: &Transport) -> Option<Duration> {
        let ends = self.asked.as_ref().is_some_and(|asked| asked.said_all);
        let idle = transport.listener().idle.filter(|_| ends);
        idle.into_iter().chain(plan.tunnel_idle).min()
    }

    /// The worker takes more of what the client says, or none for now.
    pub(super) fn handle_flow(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        wanted: bool,
    ) {
        let is_tunnel = matches!(self.input, Input::Switched);
        let Some(asked) = &mut self.asked else { return };
        asked.wanted = wanted || active(Plant::NotHeld) && is_tunnel;
        if !wanted {
            return;
        }
        transport.resume(calls);
        match self.input {
            // Until it is told that its body may come it is the worker that is waited for.
            Input::Body(_) if asked.waits => {}
            Input::Body(_) => self.watch_anew(plan, transport, calls),
            // That it was taken is a sign of life.
            Input::Switched => transport.rest(calls),
            // All was said before it was known that more is wanted.
            Input::Head | Input::BufferedBody(_) | Input::Whole | Input::Ended => {}
        }
    }
}
