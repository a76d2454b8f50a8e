//! What a pool of a shard is configured with, whatever its workers are.
//!
//! [`PoolConfig`] is for the core; what runs the workers is [`crate::backends::BackendConfig`].

use exchange::PoolId;

use crate::balance::BalanceConfig;
use crate::request_shape::RequestShape;

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

/// What the kind of its workers means for the requests of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerTraits {
    /// They are given batches: what is in one goes with it, whoever still wants it.
    pub(crate) takes_batches: bool,
    /// Another is to take the place of one that is down: what only an answer can show, that it serves
    /// again, would never be seen.
    pub(crate) replaces_down: bool,
}

/// What becomes of a connection's own program after it.
pub(crate) struct OwnConfig {
    /// It is told this, and what it answers is discarded; without it, it is replaced.
    pub(crate) reset: Option<String>,
    /// What it says unasked can be told from its answers.
    pub(crate) tells_apart: bool,
}
