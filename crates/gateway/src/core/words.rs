//! What a client and its worker tell each other of a request on its way, besides the reply.

use exchange::{RequestId, Slice};

use super::{Core, Word};
use crate::exchanges::Delivery;

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

    /// A part of a request's body goes to its worker.
    pub(crate) fn pass(&mut self, id: RequestId, part: Slice) {
        if let Some(trail) = self.exchanges.get_mut(id).and_then(|it| it.trail.as_mut()) {
            trail.bytes_in += part.len() as u64;
        }
        self.tell(id, Word::More(part));
    }

    /// All of a request's body was passed.
    pub(crate) fn pass_end(&mut self, id: RequestId) {
        self.tell(id, Word::Whole);
    }
}
