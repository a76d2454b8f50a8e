//! The fetch under way, the shards to fetch, and the place of the walk over the table.

use crate::message::OperationId;
use crate::shard_set::ShardSet;

#[derive(Debug, Default)]
pub(crate) struct Repairs {
    pub(crate) fetch: Option<Fetch>,
    /// Shards to fetch.
    pub(crate) wanted: ShardSet,
    /// The next place of the walk.
    pub(crate) walk: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) operation: OperationId,
    pub(crate) shard: u8,
    pub(crate) sent_ms: u64,
}

impl Repairs {
    pub(crate) fn is_fetch(&self, operation: OperationId) -> bool {
        self.fetch.is_some_and(|fetch| fetch.operation == operation)
    }

    pub(crate) fn is_fetching(&self, shard: u8) -> bool {
        self.fetch.is_some_and(|fetch| fetch.shard == shard)
    }

    pub(crate) fn fetch_sent_ms(&self) -> Option<u64> {
        self.fetch.map(|fetch| fetch.sent_ms)
    }

    pub(crate) const fn is_wanted(&self, shard: u8) -> bool {
        self.wanted.contains(shard)
    }

    pub(crate) fn want(&mut self, shards: &ShardSet) {
        self.wanted = self.wanted.union(shards);
    }

    pub(crate) fn wants_none(&self) -> bool {
        self.wanted.is_empty() && self.fetch.is_none()
    }

    pub(crate) const fn start_walk(&mut self) {
        self.walk = Some(0);
    }

    /// The connection ended. The shard must be fetched again.
    pub(crate) fn interrupt(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            self.wanted.insert(fetch.shard);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
