//! Builds the configuration of a pool's workers. In the build this is the only place that distinguishes the kinds of
//! workers. The backends are created from the result in [`backend::workers`].

use std::time::Duration;

use settings::{Framing, Worker};

use super::context::{BuildContext, FactoryError};
use super::worker_properties::{FailedStarts, WorkerProperties};
use super::{program, servers, shape};
use crate::error::BuildError;
use backend::handler_threads::HandlerThreadsConfig;
use backend::workers::WorkersConfig;
use flow::request_shape::RequestShape;

/// The minimum uptime of a server. If a server that was tried again retires earlier, the next pause is longer.
const SERVER_SETTLE: Duration = Duration::from_secs(1);
/// The minimum uptime of a handler's thread after which a start counts as successful.
const HANDLER_SETTLE: Duration = Duration::from_secs(1);

/// Builds the workers of a pool. Each request must be answered within the pool's response timeout.
pub(super) fn config(
    pool: &settings::Pool,
    site: BuildContext<'_>,
) -> Result<(WorkersConfig, WorkerProperties), BuildError> {
    let deadline = pool.response_timeout;
    let properties = |slots, min_uptime| {
        let recycle = pool::RecycleSettings::default();
        let starts = FailedStarts::REJECT;
        WorkerProperties { slots, min_uptime, starts, recycle, own: None, members: Vec::new() }
    };
    match pool.worker.clone() {
        Worker::Program(program) => program::program(*program, pool),
        Worker::Database(_) | Worker::Handler(_) => {
            let error = |FactoryError { why, option }| {
                let pool = pool.name.clone();
                BuildError::Handler { pool, option, why }
            };
            let factory = site.handler_registry.factory(pool).map_err(error)?;
            let shape = takes(&pool.worker);
            let workers =
                WorkersConfig::Handlers(HandlerThreadsConfig { factory, deadline, shape });
            let starts = match pool.worker {
                Worker::Database(_) => FailedStarts::WAIT,
                _ => FailedStarts::REJECT,
            };
            Ok((workers, WorkerProperties { starts, ..properties(1, HANDLER_SETTLE) }))
        }
        Worker::Servers(servers) => {
            let members = servers.servers.iter().map(servers::member).collect();
            let properties =
                WorkerProperties { members, ..properties(servers.concurrent_max, SERVER_SETTLE) };
            let config = servers::config(pool, servers, site.names)?;
            Ok((WorkersConfig::Upstream(Box::new(config)), properties))
        }
    }
}

/// Returns the form in which workers accept requests of HTTP listeners. If no form fits, the validation of the settings
/// rejects HTTP listeners for the pool.
pub(super) fn takes(worker: &Worker) -> RequestShape {
    match worker {
        Worker::Program(program) if program.framing == Framing::Http => RequestShape::Messages,
        Worker::Program(_) => RequestShape::Objects,
        Worker::Servers(_) => RequestShape::Messages,
        Worker::Handler(_) => RequestShape::Heads,
        Worker::Database(database) => shape::of_action(&database.action),
    }
}
