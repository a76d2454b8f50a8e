//! Bytes of a reply that go from their worker to their client without being looked at.
//!
//! ```text
//!   worker ──Long──▶ client: much is to come      (of another shard, or a caller here: not told)
//!   worker ◀─Unseen─ client: then to this stream  (one that cannot take it so says nothing)
//!   worker ──Relayed──▶ client                    again and again, until that was all
//! ```

use exchange::RequestId;

use super::Engine;
use flow::StreamId;
use flow::client::Client;
use flow::reply_event::ReplyEvent;

impl Engine {
    /// A worker has much to say that needs no looking at.
    pub(super) fn long(&mut self, id: RequestId, from: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        // Streams are of this loop alone.
        if let Client::Session { .. } = exchange.client {
            let client = exchange.client.streamed();
            self.finished.extend(client.map(|to| (to, ReplyEvent::SpliceOffer(from))));
        }
    }

    /// So much of it has gone.
    pub(super) fn relayed(&mut self, id: RequestId, count: u64, done: bool) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        if let Some(log_entry) = &mut exchange.log_entry {
            log_entry.bytes_out += count;
        }
        let client = exchange.client.streamed();
        self.finished.extend(client.map(|to| (to, ReplyEvent::Spliced(done))));
    }
}
