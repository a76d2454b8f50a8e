//! A new configuration for a running shard.
//!
//! What it is: the data that a shard receives and applies without failure. What it must never depend on: where it comes
//! from.

use std::sync::Arc;

use exchange::PoolId;

use crate::drain::DrainLimits;
use crate::shared_upstreams::SharedUpstreams;
use backend::backends::BackendConfig;
use engine::pool_config::PoolConfig;
use frontend::listener::ListenerConfig;

/// The part of a new configuration for one shard. Applying it cannot fail.
pub struct Reload {
    pub(crate) listeners: Vec<Arc<ListenerConfig>>,
    pub(crate) pools: Vec<PoolReload>,
    pub(crate) drain: DrainLimits,
}

/// One pool of a reload.
pub(crate) struct PoolReload {
    pub(crate) id: PoolId,
    pub(crate) config: PoolConfig,
    pub(crate) backend: BackendConfig,
    /// Whether its programs are replaced, each once its replacement is ready.
    pub(crate) replaces: bool,
    /// The servers by place, if several shards serve the pool.
    pub(crate) shares: Option<SharedUpstreams>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("pools", &self.pools.len()).finish_non_exhaustive()
    }
}
