//! What the workers of a pool are, of whatever kind.

use std::sync::Arc;
use std::time::Duration;

use crate::programs::ProgramConfig;
use crate::spawned_http::SpawnedHttpConfig;
use crate::upstream::UpstreamConfig;
use flow::request_shape::RequestShape;
use flow::worker_traits::WorkerTraits;

/// What the workers of a pool are.
pub enum WorkersConfig {
    Upstream(Box<UpstreamConfig>),
    Programs(Arc<ProgramConfig>),
    /// Programs that serve HTTP.
    SpawnedHttp(Box<SpawnedHttpConfig>),
    Handlers {
        factory: Arc<dyn exchange::Factory>,
        deadline: Duration,
        /// What they take of requests of HTTP. What reads has no effect: it may be cut short when nobody
        /// wants to know of it.
        shape: RequestShape,
    },
    /// On another shard.
    OffShard,
}

impl WorkersConfig {
    pub const fn elsewhere() -> Self {
        Self::OffShard
    }

    /// Where they listen, and how that is shown, if they do before they are started.
    pub fn addresses(&self) -> &[(event::Address, String)] {
        match self {
            Self::Upstream(plan) => plan.addresses.as_slice(),
            Self::Programs(_) | Self::SpawnedHttp(_) | Self::Handlers { .. } | Self::OffShard => {
                &[]
            }
        }
    }

    /// What another program of the operator starts from that serves this pool: no command yet, but the user
    /// and the environment of the pool's programs. Where they are not programs, those of the daemon, less the
    /// variables that are withheld.
    pub fn helper(&self) -> spawn::Command {
        let program = match self {
            Self::Programs(program) => program,
            Self::SpawnedHttp(hosted) => &hosted.program,
            Self::Upstream(_) | Self::Handlers { .. } | Self::OffShard => {
                return spawn::Command::default();
            }
        };
        spawn::Command {
            env: program.env.clone(),
            env_clear: program.policy.env_clear,
            bounds: program.policy.identity(),
            ..spawn::Command::default()
        }
    }

    /// What they mean for the requests of their pool.
    pub const fn traits(&self) -> WorkerTraits {
        match self {
            Self::Handlers { .. } => WorkerTraits { takes_batches: true, replaces_down: false },
            Self::Programs(_) | Self::SpawnedHttp(_) => {
                WorkerTraits { takes_batches: false, replaces_down: true }
            }
            Self::Upstream(_) | Self::OffShard => {
                WorkerTraits { takes_batches: false, replaces_down: false }
            }
        }
    }

    /// The same on a shard that is not their home.
    pub fn branch(&mut self) {
        if let Self::Upstream(plan) = self {
            plan.is_branch = true;
        }
    }
}
