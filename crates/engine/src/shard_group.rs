//! Shared state of all shards, as the engine uses it.

use std::sync::Arc;

use exchange::{PoolId, Table};
use pool::Tokens;

use crate::backlog::Backlog;

/// Shared state of all shards. It is called on the threads of all shards and must not block.
pub trait ShardGroup: Send + Sync {
    /// The number of shards.
    fn count(&self) -> usize;

    /// The owner shard of each pool.
    fn owners(&self) -> Table<PoolId, u32>;

    /// The slots of the workers of a pool that all shards serve; `None` for a pool that only its owner shard serves.
    fn tokens(&self, pool: PoolId) -> Option<Vec<Arc<Tokens>>>;

    /// The free room in the queue of a pool.
    fn backlog(&self, pool: PoolId) -> &Backlog;

    /// The ticket of a client that starts to wait for room in a queue: each is greater than the one before.
    fn ticket(&self) -> u64;

    /// The flow control window of one request between two shards, in bytes.
    fn window(&self) -> usize;

    /// Whether new requests must be rejected because `memory_max` was exceeded.
    fn lacks_memory(&self) -> bool;

    /// Reserves `bytes` in the mailbox of a shard for a request. `false`: the mailbox is full.
    fn post_bytes(&self, shard: u32, bytes: usize) -> bool;

    /// Releases `bytes` in the mailbox of a shard, after a request was received.
    fn take_bytes(&self, shard: u32, bytes: usize);
}
