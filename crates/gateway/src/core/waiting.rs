//! A request in the queue of a pool.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use exchange::{Peer, RequestId, Slice};
use pool::{Entry, Payload};

use crate::exchanges::{Exchange, SessionId};
use crate::form::{Asker, Form};
use crate::table::Place;
use crate::wish::{self, Wish, Wishes};

/// Memory of a request that waits, beyond its body: its places in the tables, roughly.
pub(super) const WAITING_OVERHEAD: usize = 256;

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
        let id = self.id;
        let client = Some(self.form.asker.client);
        if wishes.is_none() {
            let ask = pool::Ask { id: id.as_u64(), named, client, ..pool::Ask::default() };
            return Entry::new(now, &ask, self.bytes()).failed_by(failed);
        }
        let from = wish::Asker { peer: self.peer, session: exchange.client.session() };
        let is_object = wishes.of_objects && self.form.translation.is_some();
        let wish = Wish::of(wishes, from, (&self.body, is_object), named);
        let ask = pool::Ask { client, ..wish.ask(id, &self.body) };
        Entry::new(now, &ask, self.bytes()).failed_by(failed)
    }
}

/// Whose a request is. One without a connection or an address is nobody else's.
pub(super) fn asker(id: RequestId, exchange: &Exchange) -> Asker {
    let request = id.as_u64();
    let client = match (exchange.client.session(), exchange.peer) {
        (Some(session), _) => session_number(session),
        (None, Peer::Internet(address)) => hashed((1_u8, address)),
        (None, Peer::Local | Peer::Inside) => hashed((2_u8, request)),
    };
    Asker { client, request }
}

/// No two sessions of a shard have the same number, because the factor is odd. The product spreads them, so
/// that those of two shards, and what is hashed, have the same number by chance only.
fn session_number(SessionId { shard, place: Place { index, generation } }: SessionId) -> u64 {
    let place = u64::from(index) << 32 | u64::from(generation);
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(shard)
}

fn hashed(client: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    hasher.finish()
}

impl Payload for Waiting {
    fn bytes(&self) -> usize {
        self.body.held() + WAITING_OVERHEAD
    }
}
