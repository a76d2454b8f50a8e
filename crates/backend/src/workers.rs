//! Which kinds of worker there are. This is the one place that lists them: each kind is a [`Backend`], and nobody
//! else asks which kind a backend is.

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

/// What the workers of a pool are configured with.
pub enum WorkersConfig {
    /// Servers.
    Upstream(Box<UpstreamConfig>),
    /// Programs on pipes.
    Programs(Arc<ProgramConfig>),
    /// Programs that serve HTTP.
    SpawnedHttp(Box<SpawnedHttpConfig>),
    /// Handlers on threads.
    Handlers(HandlerThreadsConfig),
    /// Workers of another kind.
    Other(Box<dyn OpenBackend>),
    /// On another shard.
    OffShard,
}

impl WorkersConfig {
    /// The workers of this pool. `connections`: counted for all shards, where several connect to the same
    /// servers.
    pub(crate) fn open(
        self,
        pool: (PoolId, &str),
        connections: Option<ConnectionCounts>,
    ) -> Box<dyn Backend> {
        match self {
            Self::Upstream(plan) => Box::new(Upstream::new(pool, *plan, connections)),
            Self::Programs(plan) => Box::new(Programs::new(pool, plan)),
            Self::SpawnedHttp(plan) => Box::new(SpawnedHttp::new(pool, *plan)),
            Self::Handlers(plan) => Box::new(Handlers::new(pool, plan)),
            Self::Other(plan) => plan.open(pool),
            Self::OffShard => Box::new(OffShard),
        }
    }

    /// What [`Backend::configure`] is given.
    pub(crate) fn into_plan(self) -> Box<dyn Any> {
        match self {
            Self::Upstream(plan) => plan,
            Self::Programs(plan) => Box::new(plan),
            Self::SpawnedHttp(plan) => plan,
            Self::Handlers(plan) => Box::new(plan),
            Self::Other(plan) => plan.into_plan(),
            Self::OffShard => Box::new(()),
        }
    }

    /// Where they listen, and how that is shown, if they do before they are started.
    pub fn addresses(&self) -> &[(event::Address, String)] {
        match self {
            Self::Upstream(plan) => plan.addresses.as_slice(),
            _ => &[],
        }
    }

    /// What another program of the operator starts from that serves this pool: no command yet, but the user
    /// and the environment of the pool's programs. Where they are not programs, those of the daemon, less the
    /// variables that are withheld.
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

    /// What they mean for the requests of their pool.
    pub fn traits(&self) -> WorkerTraits {
        match self {
            Self::Handlers(_) => WorkerTraits { takes_batches: true, replaces_down: false },
            Self::Programs(_) | Self::SpawnedHttp(_) => {
                WorkerTraits { takes_batches: false, replaces_down: true }
            }
            Self::Other(plan) => plan.traits(),
            Self::Upstream(_) | Self::OffShard => WorkerTraits::default(),
        }
    }

    /// The same on a shard that is not their home.
    pub fn branch(&mut self) {
        if let Self::Upstream(plan) = self {
            plan.is_branch = true;
        }
    }
}
