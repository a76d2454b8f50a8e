//! The kinds of workers. Each kind implements [`Backend`]; this is the only list of kinds.

use std::any::Any;
use std::sync::Arc;

use exchange::PoolId;

use crate::backend::{Backend, OpenBackend};
use crate::connection_counts::ConnectionCounts;
use crate::handler_threads::{HandlerThreadsConfig, Handlers};
use crate::off_shard::OffShard;
use crate::programs::{ProgramConfig, Programs};
use crate::spawned_http::{SpawnedHttp, SpawnedHttpConfig};
use crate::upstream::{Upstream, UpstreamConfig};
use flow::worker_traits::WorkerTraits;

/// The configuration of the workers of a pool.
pub enum WorkersConfig {
    /// Servers on the network.
    Upstream(Box<UpstreamConfig>),
    /// Programs on pipes.
    Programs(Arc<ProgramConfig>),
    /// Programs that serve HTTP.
    SpawnedHttp(Box<SpawnedHttpConfig>),
    /// Handlers on threads.
    Handlers(HandlerThreadsConfig),
    /// Workers of another kind.
    Other(Box<dyn OpenBackend>),
    /// Workers of another shard.
    OffShard,
}

impl std::fmt::Debug for WorkersConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upstream(config) => f.debug_tuple("Upstream").field(config).finish(),
            Self::Programs(config) => f.debug_tuple("Programs").field(config).finish(),
            Self::SpawnedHttp(config) => f.debug_tuple("SpawnedHttp").field(config).finish(),
            Self::Handlers(config) => f.debug_tuple("Handlers").field(config).finish(),
            Self::Other(_) => f.debug_struct("Other").finish_non_exhaustive(),
            Self::OffShard => f.write_str("OffShard"),
        }
    }
}

impl WorkersConfig {
    /// Creates the workers of a pool. `connections` counts the connections of all shards, if several shards connect to
    /// the same servers.
    pub(crate) fn open(
        self,
        pool: (PoolId, &str),
        connections: Option<ConnectionCounts>,
    ) -> Box<dyn Backend> {
        match self {
            Self::Upstream(config) => Box::new(Upstream::new(pool, *config, connections)),
            Self::Programs(config) => Box::new(Programs::new(pool, config)),
            Self::SpawnedHttp(config) => Box::new(SpawnedHttp::new(pool, *config)),
            Self::Handlers(config) => Box::new(Handlers::new(pool, config)),
            Self::Other(config) => config.open(pool),
            Self::OffShard => Box::new(OffShard),
        }
    }

    /// Returns the value for [`Backend::configure`].
    pub(crate) fn into_config(self) -> Box<dyn Any> {
        match self {
            Self::Upstream(config) => config,
            Self::Programs(config) => Box::new(config),
            Self::SpawnedHttp(config) => config,
            Self::Handlers(config) => Box::new(config),
            Self::Other(config) => config.into_config(),
            Self::OffShard => Box::new(()),
        }
    }

    /// Returns the addresses of servers and their display forms. Empty for workers that have no address before their
    /// start.
    pub fn addresses(&self) -> &[(event::Address, String)] {
        match self {
            Self::Upstream(config) => config.addresses.as_slice(),
            _ => &[],
        }
    }

    /// Returns the base of a command for an auxiliary program of the pool, such as a health check. It has the user and
    /// the environment of the pool's programs. In a pool without programs, it has those of the daemon.
    pub fn helper(&self) -> spawn::Command {
        let program = match self {
            Self::Programs(program) => program,
            Self::SpawnedHttp(hosted) => &hosted.program,
            _ => return spawn::Command::default(),
        };
        spawn::Command {
            env: program.env.clone(),
            env_clear: program.policy.env_clear,
            bounds: program.policy.identity(),
            ..spawn::Command::default()
        }
    }

    /// Returns the properties of the workers that affect the requests of their pool.
    pub fn traits(&self) -> WorkerTraits {
        match self {
            Self::Handlers(_) => WorkerTraits { takes_batches: true, replaces_down: false },
            Self::Programs(_) | Self::SpawnedHttp(_) => {
                WorkerTraits { takes_batches: false, replaces_down: true }
            }
            Self::Other(config) => config.traits(),
            Self::Upstream(_) | Self::OffShard => WorkerTraits::default(),
        }
    }

    /// Adapts the configuration for a member shard.
    pub fn make_member_shard(&mut self) {
        if let Self::Upstream(config) = self {
            config.is_member_shard = true;
        }
    }
}
