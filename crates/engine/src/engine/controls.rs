//! Control messages between a client and the worker of its request.

use exchange::RequestId;

use super::Engine;
use crate::exchanges::State;
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;

impl Engine {
    /// A worker resumes or pauses a request body.
    pub(super) fn flow(&mut self, id: RequestId, wanted: bool) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, ReplyEvent::BodyWanted(wanted)));
        }
    }

    /// A worker has closed its direction of a tunnel.
    pub(super) fn said_all(&mut self, id: RequestId) {
        if let Some(client) = self.exchanges.get_mut(id).and_then(|it| it.client.streamed()) {
            self.finished.push((client, ReplyEvent::ReplyEnd));
        }
    }

    /// Passes a control message to the worker of a request, if it has one.
    pub(super) fn control_worker(&mut self, id: RequestId, word: RequestControl) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if matches!(word, RequestControl::BodyEnd) {
            exchange.body_end = Some(self.now);
        }
        match exchange.state {
            State::Working(worker) => {
                self.effects.controls.push_back((exchange.pool, worker, id, word));
            }
            State::Away(owner) => self.tell_away(id, owner, word),
            State::Received | State::Waiting(_) => {}
        }
    }
}
