//! What a client and its worker tell each other of a request on its way, besides the reply.

use exchange::RequestId;

use super::Engine;
use crate::exchanges::State;
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;

impl Engine {
    /// A worker wants more of a request's body, or none for now.
    pub(super) fn flow(&mut self, id: RequestId, wanted: bool) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, ReplyEvent::BodyWanted(wanted)));
        }
    }

    /// A worker has ended its direction of a tunnel.
    pub(super) fn said_all(&mut self, id: RequestId) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, ReplyEvent::ReplyEnd));
        }
    }

    /// The worker of this request, if one has it.
    pub(super) fn tell(&mut self, id: RequestId, word: RequestControl) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if matches!(word, RequestControl::BodyEnd) {
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
}
