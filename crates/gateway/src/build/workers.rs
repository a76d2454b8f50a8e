//! What the settings say of a pool's workers. This is the one place of a build that knows which kinds of
//! them there are; what runs them is made from it in [`backend::workers`].

use std::time::Duration;

use settings::{Framing, Worker};

use super::context::BuildContext;
use super::said::StartMessages;
use super::{program, servers, shape};
use crate::error::BuildError;
use backend::handler_threads::HandlerThreadsConfig;
use backend::workers::WorkersConfig;
use flow::request_shape::RequestShape;

/// A server that retires sooner than this after it was tried again is tried later the next time.
const SERVER_SETTLE: Duration = Duration::from_secs(1);
/// How long a handler's thread must live to count as having started well.
const HANDLER_SETTLE: Duration = Duration::from_secs(1);

/// The workers of a pool, each of whose requests is answered within its deadline.
pub(super) fn config(
    pool: &settings::Pool,
    site: BuildContext<'_>,
) -> Result<(WorkersConfig, StartMessages), BuildError> {
    let deadline = pool.response_timeout;
    let said = |slots, settle| {
        let recycle = pool::RecycleSettings::default();
        StartMessages { slots, settle, recycle, own: None, members: Vec::new() }
    };
    match pool.worker.clone() {
        Worker::Program(program) => program::program(*program, pool),
        Worker::Database(_) | Worker::Handler(_) => {
            let why = |why| BuildError::Handler { pool: pool.name.clone(), why };
            let factory = site.handler_registry.factory(pool).map_err(why)?;
            let shape = takes(&pool.worker);
            let workers =
                WorkersConfig::Handlers(HandlerThreadsConfig { factory, deadline, shape });
            Ok((workers, said(1, HANDLER_SETTLE)))
        }
        Worker::Servers(servers) => {
            let members = servers.servers.iter().map(servers::member).collect();
            let said = StartMessages { members, ..said(servers.concurrent_max, SERVER_SETTLE) };
            let config = servers::config(pool, servers, site.names)?;
            Ok((WorkersConfig::Upstream(Box::new(config)), said))
        }
    }
}

/// What such workers take from listeners of HTTP. Where none of it fits, the settings let no listener of HTTP
/// there.
pub(super) fn takes(worker: &Worker) -> RequestShape {
    match worker {
        Worker::Program(program) if program.framing == Framing::Http => RequestShape::Messages,
        Worker::Program(_) => RequestShape::Objects,
        Worker::Servers(_) | Worker::Handler(_) => RequestShape::Messages,
        Worker::Database(database) => shape::of_action(&database.action),
    }
}
