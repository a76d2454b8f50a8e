//! What a pool of a shard is configured with, whatever its workers are.
//!
//! [`PoolConfig`] is for the engine; what runs the workers is `backend::backends::BackendConfig`.

use exchange::PoolId;

use crate::balance::BalanceConfig;
use flow::request_shape::RequestShape;
use flow::worker_traits::WorkerTraits;

/// One pool.
pub struct PoolConfig {
    pub name: String,
    pub pool: pool::Settings,
    pub then: Option<PoolId>,
    pub balance: BalanceConfig,
    /// What requests of HTTP become for it.
    pub takes: RequestShape,
    /// Its programs are connections' own.
    pub own: Option<SessionWorkersConfig>,
    /// Its programs are asked by ids of ours.
    pub is_tagged: bool,
    pub traits: WorkerTraits,
}

/// What becomes of a connection's own program after it.
pub struct SessionWorkersConfig {
    /// It is told this, and what it answers is discarded; without it, it is replaced.
    pub reset: Option<String>,
    /// What it says unasked can be told from its answers.
    pub tells_apart: bool,
}
