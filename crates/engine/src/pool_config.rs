//! The configuration of a pool for the engine.
//!
//! It is independent of the kind of workers, which `backend::backends::BackendConfig` describes.

use std::sync::mpsc::SyncSender;

use exchange::{BindingUse, PoolId};

use crate::balance::BalanceConfig;
use flow::request_shape::RequestShape;
use flow::worker_traits::WorkerTraits;

/// The configuration of one pool.
#[derive(Debug)]
pub struct PoolConfig {
    /// The configured name.
    pub name: String,
    /// Queue, balancing and number of workers.
    pub pool: pool::Settings,
    /// The pool that receives the replies as requests.
    pub then: Option<PoolId>,
    /// Request keys, passive health checks and fallback.
    pub balance: BalanceConfig,
    /// The form in which the workers accept HTTP requests.
    pub takes: RequestShape,
    /// Each program serves one connection only (`dispatch = "session"`).
    pub own: Option<SessionWorkersConfig>,
    /// Requests to its programs carry ids that the daemon assigns.
    pub is_tagged: bool,
    /// Properties of the kind of its workers.
    pub traits: WorkerTraits,
    /// Receives the uses of its bindings, if other daemons share them. A reload does not change it.
    pub binding_uses: Option<SyncSender<Vec<BindingUse>>>,
}

/// What happens to a program after the end of its connection.
#[derive(Debug)]
pub struct SessionWorkersConfig {
    /// The request that resets the program; its reply is discarded. `None`: the program is replaced.
    pub reset: Option<String>,
    /// Its protocol distinguishes unsolicited messages from replies.
    pub tells_apart: bool,
}
