//! A request in the queue of a pool.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use exchange::{Peer, Place, RequestId};
use pool::QueueEntry;

use crate::exchanges::{Attempt, Exchange};
use crate::request_keys::{self, PoolKeys, RequestKeys};
use flow::ids::SessionId;
use flow::payload::Payload;
use flow::request_meta::{RequestMeta, RequestSource};

/// Approximate memory of a queued request in the tables, in bytes.
pub(super) const WAITING_OVERHEAD: usize = 256;

/// A request in the queue of a pool.
#[derive(Debug)]
pub struct QueuedRequest {
    pub(crate) id: RequestId,
    pub(crate) peer: Peer,
    pub(crate) at_us: i64,
    pub(crate) payload: Payload,
    pub(crate) meta: RequestMeta,
}

impl QueuedRequest {
    /// The properties of the request that its pool needs.
    pub(super) fn entry(&self, now: Instant, keys: &PoolKeys, exchange: &Exchange) -> QueueEntry {
        let Attempt { named, failed, .. } = exchange.attempt;
        let id = self.id;
        let client = Some(self.meta.asker.client);
        if keys.is_none() {
            let ask = pool::RequestTraits {
                id: id.as_u64(),
                named,
                client,
                ..pool::RequestTraits::default()
            };
            return QueueEntry::new(now, &ask, pool::Queueable::bytes(self)).failed_by(failed);
        }
        let from = request_keys::KeySource { peer: self.peer, session: exchange.client.session() };
        let keys = RequestKeys::of(keys, from, &self.payload, named);
        let ask = pool::RequestTraits { client, ..keys.traits(id) };
        QueueEntry::new(now, &ask, pool::Queueable::bytes(self)).failed_by(failed)
    }
}

/// The client of a request. Without a connection or an address, each request counts as a client.
pub(super) fn asker(id: RequestId, exchange: &Exchange) -> RequestSource {
    let request = id.as_u64();
    let client = match (exchange.client.session(), exchange.source.peer) {
        (Some(session), _) => session_number(session),
        (None, Peer::Internet(address)) => hashed((1_u8, address)),
        (None, Peer::Local | Peer::Inside) => hashed((2_u8, request)),
    };
    RequestSource { client, request }
}

/// Sessions of one shard have different numbers, because the factor is odd. The product spreads them, so that equal
/// numbers of two shards, or of a session and a hash, occur by chance only.
fn session_number(SessionId { shard, place: Place { index, generation } }: SessionId) -> u64 {
    let place = u64::from(index) << 32 | u64::from(generation);
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(shard)
}

fn hashed(client: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    hasher.finish()
}

impl pool::Queueable for QueuedRequest {
    fn bytes(&self) -> usize {
        self.payload.held() + WAITING_OVERHEAD
    }
}
