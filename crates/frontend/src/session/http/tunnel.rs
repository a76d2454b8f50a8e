//! The tunnel after a 101 response: bytes are forwarded in both directions, with flow control. Each direction ends
//! separately; the tunnel ends with both.
//!
//! ```text
//!   client ──read while `wanted`──▶ worker   paused and resumed by the output buffer of the worker
//!   client ◀──while not `holding`── worker   paused and resumed by the output buffer of the client
//! ```

use std::time::Duration;

use event::{Context, Data};
use exchange::mutant::{Mutant, active};

use super::{ActiveRequest, HttpExchange, Input};
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::transport::Transport;

impl ActiveRequest {
    /// The server has switched the protocol.
    pub(super) fn begin_to_talk(&mut self) {
        // The output buffer of the worker is empty.
        self.wanted = true;
        // The end of the connection shows the client that the server has ended cleanly.
        self.open_ended = !active(Mutant::QuietCut);
    }
}

impl HttpExchange {
    /// Forwards bytes of the client, or leaves them unread until the server accepts them.
    pub(super) fn talk(
        &self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let length = data.bytes().len();
        match &self.asked {
            Some(asked) if length > 0 && asked.wanted => {
                cx.requests.pass(asked.request, data.take(length), length);
            }
            Some(_) if length > 0 => transport.pause(cx.io),
            _ => {}
        }
    }

    /// The server has closed its direction. The client may still send; the idle timeout of the listener applies.
    pub(super) fn handle_said_all(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        io: &mut Context<'_>,
    ) {
        let Some(asked) = &mut self.asked else { return };
        asked.said_all = true;
        transport.finish_sending(io);
        transport.restart_idle(io);
        transport.arm_look(io, self.tunnel_idle(config, transport));
    }

    /// The idle timeout of the tunnel.
    pub(super) fn tunnel_idle(
        &self,
        config: &HttpConfig,
        transport: &Transport,
    ) -> Option<Duration> {
        let ends = self.asked.as_ref().is_some_and(|asked| asked.said_all);
        let idle = transport.listener().idle.filter(|_| ends);
        idle.into_iter().chain(config.tunnel_idle).min()
    }

    /// The worker pauses or resumes input of the client.
    pub(super) fn handle_flow(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        io: &mut Context<'_>,
        wanted: bool,
    ) {
        let is_tunnel = matches!(self.input, Input::Switched);
        let Some(asked) = &mut self.asked else { return };
        asked.wanted = wanted || active(Mutant::NotHeld) && is_tunnel;
        if !wanted {
            return;
        }
        transport.resume(io);
        match self.input {
            // Until `100 Continue` is sent, the timeout is attributed to the worker.
            Input::Body(_) if asked.waits => {}
            Input::Body(_) => self.watch_anew(config, transport, io),
            // Progress of the worker counts as traffic.
            Input::Switched => transport.restart_idle(io),
            // The body was complete before the worker accepted more.
            Input::Head | Input::BufferedBody(_) | Input::Whole | Input::Ended => {}
        }
    }
}
