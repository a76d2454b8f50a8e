//! What the workers of a pool are, of whatever kind.

use std::sync::Arc;
use std::time::Duration;

use crate::hosted::HostedConfig;
use crate::programs::ProgramConfig;
use crate::servers::ServersConfig;
use flow::request_shape::RequestShape;
use flow::worker_traits::WorkerTraits;

/// What the workers of a pool are.
pub enum WorkersConfig {
    Servers(Box<ServersConfig>),
    Programs(Arc<ProgramConfig>),
    /// Programs that serve HTTP.
    Hosted(Box<HostedConfig>),
    Handlers {
        factory: Arc<dyn exchange::Factory>,
        deadline: Duration,
        /// What they take of requests of HTTP. What reads has no effect: it may be cut short when nobody
        /// wants to know of it.
        shape: RequestShape,
    },
    /// On another shard.
    Elsewhere,
}

impl WorkersConfig {
    pub const fn elsewhere() -> Self {
        Self::Elsewhere
    }

    /// Where they listen, and how that is shown, if they do before they are started.
    pub fn addresses(&self) -> &[(event::Address, String)] {
        match self {
            Self::Servers(plan) => plan.addresses.as_slice(),
            Self::Programs(_) | Self::Hosted(_) | Self::Handlers { .. } | Self::Elsewhere => &[],
        }
    }

    /// What another program of the operator starts from that serves this pool: no command yet, but the user
    /// and the environment of the pool's programs. Where they are not programs, those of the daemon, less the
    /// variables that are withheld.
    pub fn helper(&self) -> spawn::Command {
        let program = match self {
            Self::Programs(program) => program,
            Self::Hosted(hosted) => &hosted.program,
            Self::Servers(_) | Self::Handlers { .. } | Self::Elsewhere => {
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
            Self::Programs(_) | Self::Hosted(_) => {
                WorkerTraits { takes_batches: false, replaces_down: true }
            }
            Self::Servers(_) | Self::Elsewhere => {
                WorkerTraits { takes_batches: false, replaces_down: false }
            }
        }
    }

    /// The same on a shard that is not their home.
    pub fn branch(&mut self) {
        if let Self::Servers(plan) = self {
            plan.is_branch = true;
        }
    }
}
