//! A request in the queue of a pool.

use std::time::Instant;

use exchange::{Peer, RequestId, Slice};
use pool::{Entry, Payload};

use crate::exchanges::{Client, Exchange};
use crate::form::Form;
use crate::wish::{Asker, Wish, Wishes};

/// Memory of a request that waits, beyond its body: its places in the tables, roughly.
const WAITING_OVERHEAD: usize = 256;

/// A request in the queue of a pool.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: RequestId,
    pub(crate) peer: Peer,
    pub(crate) at_us: i64,
    pub(crate) body: Slice,
    pub(crate) form: Form,
}

impl Waiting {
    /// What its pool is to know of it.
    pub(super) fn entry(&self, now: Instant, wishes: &Wishes, exchange: &Exchange) -> Entry {
        let &Exchange { named, failed, .. } = exchange;
        // What is decided about it is found by the id that it has where its client is.
        let id = match exchange.client {
            Client::Elsewhere { request, .. } => request,
            _ => self.id,
        };
        if wishes.is_none() {
            let ask = pool::Ask { id: id.as_u64(), named, ..pool::Ask::default() };
            return Entry::new(now, &ask, self.bytes()).failed_by(failed);
        }
        let from = Asker { peer: self.peer, session: exchange.client.session() };
        let is_object = wishes.of_objects && self.form.translation.is_some();
        let wish = Wish::of(wishes, from, (&self.body, is_object), named);
        Entry::new(now, &wish.ask(id, &self.body), self.bytes()).failed_by(failed)
    }
}

impl Payload for Waiting {
    fn bytes(&self) -> usize {
        self.body.held() + WAITING_OVERHEAD
    }
}
