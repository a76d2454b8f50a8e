//! What the settings say of a pool's workers. This is the one place of a plan that knows which kinds of
//! them there are; what runs them is made from it in [`crate::workers`].

use std::sync::Arc;
use std::time::Duration;

use settings::{Framing, Worker};

use super::program::{self, HostedPlan, ProgramPlan};
use super::servers::{self, ServersPlan};
use super::{OwnPlan, PlanError, Site, Takes};

/// What the workers of a pool are.
pub(crate) enum WorkersPlan {
    Servers(Box<ServersPlan>),
    Programs(Arc<ProgramPlan>),
    /// Programs that serve HTTP.
    Hosted(Box<HostedPlan>),
    Handlers {
        factory: Arc<dyn exchange::Factory>,
        deadline: Duration,
        /// What they do has no effect: it may be cut short when nobody wants to know of it.
        reads: bool,
    },
    /// On another shard.
    Elsewhere,
}

impl WorkersPlan {
    pub(super) const fn elsewhere() -> Self {
        Self::Elsewhere
    }

    pub(crate) const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Elsewhere)
    }

    /// Where they listen, and how that is shown, if they do before they are started.
    pub(super) fn addresses(&self) -> &[(event::Address, String)] {
        match self {
            Self::Servers(plan) => &plan.addresses,
            Self::Programs(_) | Self::Hosted(_) | Self::Handlers { .. } | Self::Elsewhere => &[],
        }
    }

    /// What another program of the operator starts from that serves this pool: no command yet, but the user
    /// and the environment of the pool's programs. Where they are not programs, those of the daemon, less the
    /// variables that are withheld.
    pub(super) fn helper(&self) -> spawn::Command {
        let program = match self {
            Self::Programs(program) => program,
            Self::Hosted(hosted) => &hosted.program,
            Self::Servers(_) | Self::Handlers { .. } | Self::Elsewhere => {
                return spawn::Command::default();
            }
        };
        spawn::Command {
            env: program.env.clone(),
            env_clear: program.terms.env_clear,
            bounds: program.terms.identity(),
            ..spawn::Command::default()
        }
    }

    /// The same on a shard that is not their home.
    pub(super) fn branch(&mut self) {
        if let Self::Servers(plan) = self {
            plan.is_branch = true;
        }
    }
}

/// What the workers of a pool say of it, beside what they are.
pub(super) struct Said {
    /// Requests that one of them has at once.
    pub(super) slots: u32,
    /// How long one must live to count as having started well.
    pub(super) settle: Duration,
    pub(super) recycle: pool::RecycleSettings,
    pub(super) own: Option<OwnPlan>,
    /// Those that are there by name.
    pub(super) members: Vec<pool::Member>,
}

/// A server that retires sooner than this after it was tried again is tried later the next time.
const SERVER_SETTLE: Duration = Duration::from_secs(1);
/// How long a handler's thread must live to count as having started well.
const HANDLER_SETTLE: Duration = Duration::from_secs(1);

/// The workers of a pool, each of whose requests is answered within its deadline.
pub(super) fn plan(
    pool: &settings::Pool,
    site: Site<'_>,
) -> Result<(WorkersPlan, Said), PlanError> {
    let deadline = pool.deadline;
    let said = |slots, settle| {
        let recycle = pool::RecycleSettings::default();
        Said { slots, settle, recycle, own: None, members: Vec::new() }
    };
    match pool.worker.clone() {
        Worker::Program(program) => program::program(*program, pool),
        Worker::Database(_) | Worker::Handler(_) => {
            let why = |why| PlanError::Handler { pool: pool.name.clone(), why };
            let factory = site.workshop.factory(pool).map_err(why)?;
            let reads = matches!(takes(&pool.worker), Takes::Records(_));
            let workers = WorkersPlan::Handlers { factory, deadline, reads };
            Ok((workers, said(1, HANDLER_SETTLE)))
        }
        Worker::Servers(servers) => {
            let members = servers.servers.iter().map(servers::member).collect();
            let said = Said { members, ..said(servers.requests_max, SERVER_SETTLE) };
            let plan = servers::plan(pool, servers, site.names)?;
            Ok((WorkersPlan::Servers(Box::new(plan)), said))
        }
    }
}

/// What such workers take from listeners of HTTP. Where none of it fits, the settings let no listener of HTTP
/// there.
pub(super) fn takes(worker: &Worker) -> Takes {
    match worker {
        Worker::Program(program) if program.framing == Framing::Http => Takes::Messages,
        Worker::Program(_) => Takes::Objects,
        Worker::Servers(_) | Worker::Handler(_) => Takes::Messages,
        Worker::Database(database) => Takes::of_action(&database.action),
    }
}
