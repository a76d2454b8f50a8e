//! What a client and its worker tell each other of a request on its way, besides the reply.

use exchange::{RequestId, Slice};

use super::Core;
use crate::delivery::Delivery;
use crate::exchanges::State;
use crate::request_control::RequestControl;

impl Core {
    /// A worker wants more of a request's body, or none for now.
    pub(super) fn flow(&mut self, id: RequestId, wanted: bool) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, Delivery::Flow(wanted)));
        }
    }

    /// A worker has ended its direction of a tunnel.
    pub(super) fn said_all(&mut self, id: RequestId) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, Delivery::SaidAll));
        }
    }

    /// A part of a request's body goes to its worker; so many bytes of it are no framing.
    pub(crate) fn pass(&mut self, id: RequestId, part: Slice, data: usize) {
        if let Some(trail) = self.exchanges.get_mut(id).and_then(|it| it.trail.as_mut()) {
            trail.bytes_in += data as u64;
        }
        self.tell(id, RequestControl::More(part, data));
    }

    /// All of a request's body was passed.
    pub(crate) fn pass_end(&mut self, id: RequestId) {
        self.tell(id, RequestControl::Whole);
    }

    /// The worker of this request, if one has it.
    pub(super) fn tell(&mut self, id: RequestId, word: RequestControl) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if matches!(word, RequestControl::Whole) {
            exchange.body_end = Some(self.now);
        }
        match exchange.state {
            State::Working(worker) => {
                self.effects.controls.push_back((exchange.pool, worker, id, word));
            }
            State::Away(home) => self.tell_away(id, home, word),
            State::Received | State::Waiting(_) => {}
        }
    }

    /// A client does not take the parts of this reply, or takes them again.
    pub(crate) fn hold(&mut self, id: RequestId, hold: bool) {
        self.tell(id, if hold { RequestControl::Hold } else { RequestControl::GoOn });
    }
}
