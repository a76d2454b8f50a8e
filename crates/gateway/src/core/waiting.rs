//! A request in the queue of a pool.

use std::time::Instant;

use exchange::{Peer, RequestId, Slice};
use pool::{Entry, Payload};

use crate::form::Form;
use crate::wish::{Wish, Wishes};

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
    pub(super) fn entry(&self, now: Instant, wishes: &Wishes, named: Option<u64>) -> Entry {
        if named.is_none() && wishes.is_none() {
            let ask = pool::Ask { id: self.id.as_u64(), ..pool::Ask::default() };
            return Entry::new(now, &ask, self.bytes());
        }
        let wish = Wish::of(wishes, self.peer, &self.body, named);
        Entry::new(now, &wish.ask(self.id, &self.body), self.bytes())
    }
}

impl Payload for Waiting {
    fn bytes(&self) -> usize {
        self.body.held() + WAITING_OVERHEAD
    }
}
