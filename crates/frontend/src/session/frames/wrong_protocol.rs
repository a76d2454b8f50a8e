//! A client of another protocol is refused once, and closed before one of its frames becomes a request.

use exchange::{Cause, Outcome, Phase};
use wire::{Framing, Start, jsonrpc};

use super::{Frames, Input};
use crate::context::SessionContext;
use crate::session::reply_queue::Name;
use crate::transport::Transport;

const IS_TLS: &str = "this listener does not speak TLS";
const IS_HTTP: &str =
    "this listener does not speak HTTP: an HTTP request needs a listener with protocol = \"http\"";

impl Frames {
    /// Looks at the first bytes of the connection. True when they are HTTP or TLS, which is refused.
    pub(super) fn refuses_start(
        &mut self,
        transport: &Transport,
        bytes: &[u8],
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        match self.start.as_mut().map(|start| start.look(bytes)) {
            None | Some(Start::Undecided) => false,
            Some(Start::Other) => {
                self.start = None;
                false
            }
            Some(Start::Http) => {
                self.refuse_start(transport, IS_HTTP, cx);
                true
            }
            Some(Start::Tls) => {
                self.refuse_start(transport, IS_TLS, cx);
                true
            }
        }
    }

    /// The first frame is too long, and may be the beginning of an HTTP request whose version did not come yet. True if
    /// it is refused as one. A line with an unusual method is skipped; then the next line decides.
    pub(super) fn refuses_long_http(
        &mut self,
        transport: &Transport,
        bytes: &[u8],
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let Some(start) = self.start.take() else { return false };
        if self.config.framing == Framing::Lines && !start.has_usual_method(bytes) {
            self.follows_long_line = true;
            return false;
        }
        self.refuse_start(transport, IS_HTTP, cx);
        true
    }

    /// The frame after a first line that was too long. True if it is the first header field of browsers, which is refused.
    pub(super) fn refuses_host(
        &mut self,
        transport: &Transport,
        frame: &[u8],
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        const HOST: &[u8] = b"host:";
        let follows = std::mem::take(&mut self.follows_long_line);
        let is_host =
            follows && frame.get(..HOST.len()).is_some_and(|it| it.eq_ignore_ascii_case(HOST));
        if is_host {
            self.refuse_start(transport, IS_HTTP, cx);
        }
        is_host
    }

    fn refuse_start(&mut self, transport: &Transport, why: &str, cx: &mut SessionContext<'_, '_>) {
        self.start = None;
        self.close_wrong_protocol();
        let outcome = Outcome::ended(Cause::Malformed, Phase::Receive, why);
        self.refuse(transport, outcome, Name::Unknown, cx);
    }

    /// A frame is no message. Where it is the first, and is no JSON, so is whatever follows.
    pub(super) fn refuse_message(
        &mut self,
        transport: &Transport,
        fault: jsonrpc::Fault,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if matches!(fault, jsonrpc::Fault::Syntax(_)) && self.reply_queue.next_number() == 0 {
            self.close_wrong_protocol();
        }
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, fault.message());
        self.refuse(transport, outcome, Name::Unknown, cx);
    }

    fn close_wrong_protocol(&mut self) {
        self.input = Input::Ended;
        self.is_wrong_protocol = true;
    }
}
