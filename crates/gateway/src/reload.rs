//! Other settings for a shard that serves.
//!
//! What it is: what a shard is told, and takes over without fail. What it must never know: where it comes
//! from.

use std::sync::Arc;

use exchange::PoolId;

use crate::drain::DrainLimits;
use crate::shared_upstreams::SharedUpstreams;
use backend::backends::BackendConfig;
use engine::pool_config::PoolConfig;
use frontend::listener::ListenerConfig;

/// What another configuration means for one shard. Taking it over cannot fail.
pub struct Reload {
    pub(crate) listeners: Vec<Arc<ListenerConfig>>,
    pub(crate) pools: Vec<PoolReload>,
    pub(crate) drain: DrainLimits,
}

/// One pool of it.
pub(crate) struct PoolReload {
    pub(crate) id: PoolId,
    pub(crate) config: PoolConfig,
    pub(crate) backend: BackendConfig,
    /// Its programs are replaced, each once another is ready.
    pub(crate) replaces: bool,
    /// Where several shards serve it: its servers, by place.
    pub(crate) shares: Option<SharedUpstreams>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("pools", &self.pools.len()).finish_non_exhaustive()
    }
}
