//! Direct forwarding of a long reply body from the stream of its worker to that of its client.
//!
//! ```text
//!   worker ──SpliceOffer──▶ client   the rest is long (not offered to other shards and internal callers)
//!   worker ◀────Splice───── client   to this stream (no reply if the client's protocol cannot use it)
//!   worker ────Spliced────▶ client   repeatedly, until all is forwarded
//! ```

use exchange::RequestId;

use super::Engine;
use flow::StreamId;
use flow::client::Client;
use flow::reply_event::ReplyEvent;

impl Engine {
    /// Offers direct forwarding of the rest of a reply body to the client.
    pub(super) fn long(&mut self, id: RequestId, from: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        // A stream belongs to one loop.
        if let Client::Session { .. } = exchange.client {
            let client = exchange.client.streamed();
            self.finished.extend(client.map(|to| (to, ReplyEvent::SpliceOffer(from))));
        }
    }

    /// Counts bytes that were forwarded directly.
    pub(super) fn relayed(&mut self, id: RequestId, count: u64, done: bool) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if let Some(log_entry) = &mut exchange.log_entry {
            log_entry.bytes_out += count;
        }
        let client = exchange.client.streamed();
        self.finished.extend(client.map(|to| (to, ReplyEvent::Spliced(done))));
    }
}
