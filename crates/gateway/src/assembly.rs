//! What a shard is assembled from when its configurations are built already.

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

/// Whether a connection of this listener, from this peer, is admitted. One that is not is closed
/// without a word and counted as refused. Called on the shard's thread; must not block.
pub type Admission = Box<dyn FnMut(&str, &Peer) -> bool + Send>;

/// What a shard is assembled from: see [`Shard::assemble`](crate::Shard::assemble).
pub struct Assembly {
    /// Its listeners, each with a bound socket if this shard listens for it. Their ids are those of
    /// [`Fleet::listener`].
    pub listeners: Vec<(ListenerConfig, Option<Fd>)>,
    /// Its pools, each with what runs its workers. Their ids are those of [`Fleet::pool`].
    pub pools: Vec<(PoolId, PoolConfig, BackendConfig)>,
    /// Starts its programs.
    pub spawner: Box<dyn Spawn>,
    /// Starts its handlers' threads.
    pub runner: Box<dyn ThreadSpawner>,
    /// All shards of the daemon.
    pub fleet: Arc<Fleet>,
    /// Which of them it is; it runs on the loop whose mailbox is the fleet's of this number.
    pub shard: u32,
    /// Where it stores its numbers, with a place for each listener and pool.
    pub metrics: Arc<Metrics>,
    /// One moment on both clocks.
    pub started: (Instant, SystemTime),
    /// For everything random.
    pub seed: u64,
    /// Asked about each connection before anything is done with it; all are admitted without it.
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
