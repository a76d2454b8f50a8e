//! What a pool of a shard is configured with, whatever its workers are.
//!
//! [`PoolConfig`] is for the core; what runs the workers is [`crate::backends::BackendConfig`].

use exchange::PoolId;

use crate::balance::BalanceConfig;
use crate::request_shape::RequestShape;
use crate::worker_traits::WorkerTraits;

/// One pool.
pub(crate) struct PoolConfig {
    pub(crate) name: String,
    pub(crate) pool: pool::Settings,
    pub(crate) then: Option<PoolId>,
    pub(crate) balance: BalanceConfig,
    /// What requests of HTTP become for it.
    pub(crate) takes: RequestShape,
    /// Its programs are connections' own.
    pub(crate) own: Option<OwnConfig>,
    /// Its programs are asked by ids of ours.
    pub(crate) is_tagged: bool,
    pub(crate) traits: WorkerTraits,
}

/// What becomes of a connection's own program after it.
pub(crate) struct OwnConfig {
    /// It is told this, and what it answers is discarded; without it, it is replaced.
    pub(crate) reset: Option<String>,
    /// What it says unasked can be told from its answers.
    pub(crate) tells_apart: bool,
}
