//! All shards of the daemon, as the engine of one of them sees them.

use std::sync::Arc;

use exchange::{PoolId, Table};
use pool::Tokens;

use crate::backlog::Backlog;

/// What the engines of all shards have in common. Calls come from every shard's thread and must not block.
pub trait ShardGroup: Send + Sync {
    /// How many shards there are.
    fn count(&self) -> usize;

    /// The owner shard of each pool.
    fn owners(&self) -> Table<PoolId, u32>;

    /// The slots of the servers of a pool that all shards serve; none for a pool that its owner shard alone
    /// serves.
    fn tokens(&self, pool: PoolId) -> Option<Vec<Arc<Tokens>>>;

    /// What all shards know of the queue of a pool.
    fn backlog(&self, pool: PoolId) -> &Backlog;

    /// Bytes of one request's parts that may be on their way between two shards.
    fn window(&self) -> usize;

    /// Whether new requests are to be rejected because too much memory is held.
    fn lacks_memory(&self) -> bool;

    /// Counts a request of so many bytes that is sent to a shard. False when there is no room for it.
    fn post_bytes(&self, shard: u32, bytes: usize) -> bool;

    /// A shard has taken in a request of so many bytes.
    fn take_bytes(&self, shard: u32, bytes: usize);
}
