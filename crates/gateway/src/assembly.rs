//! The parts of a shard whose configurations are already built.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use event::Fd;
use exchange::{Peer, PoolId};
use spawn::Spawn;

use crate::drain::DrainLimits;
use crate::fleet::Fleet;
use backend::backends::BackendConfig;
use backend::system::ThreadSpawner;
use engine::pool_config::PoolConfig;
use frontend::listener::ListenerConfig;
use observe::access_log::AccessLog;
use observe::metrics::Metrics;

/// Decides whether a connection of this listener, from this peer, is admitted. A connection that is not admitted is
/// closed without an answer and counted as rejected. Called on the shard's thread; must not block.
pub type Admission = Box<dyn FnMut(&str, &Peer) -> bool + Send>;

/// The parts of a shard: see [`Shard::assemble`](crate::Shard::assemble).
pub struct Assembly {
    /// Its listeners, each with a bound socket if this shard listens for it. Their ids are those of
    /// [`Fleet::listener`].
    pub listeners: Vec<(ListenerConfig, Option<Fd>)>,
    /// Its pools, each with the backend of its workers. Their ids are those of [`Fleet::pool`].
    pub pools: Vec<(PoolId, PoolConfig, BackendConfig)>,
    /// Starts its programs.
    pub spawner: Box<dyn Spawn>,
    /// Starts the threads of its handlers.
    pub runner: Box<dyn ThreadSpawner>,
    /// All shards of the daemon.
    pub fleet: Arc<Fleet>,
    /// The number of this shard. The shard must run on the loop of the fleet's mailbox with this number.
    pub shard: u32,
    /// Its metrics, with a place for each listener and pool.
    pub metrics: Arc<Metrics>,
    /// The same moment on both clocks.
    pub started: (Instant, SystemTime),
    /// The seed of all random numbers.
    pub seed: u64,
    /// Decides about each connection before any other step; `None`: all are admitted.
    pub admission: Option<Admission>,
    /// The access log.
    pub access_log: AccessLog,
    /// The time limits of a drain.
    pub drain: DrainLimits,
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}
