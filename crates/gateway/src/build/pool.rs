//! Builds a pool with its workers.

use std::time::Duration;

use super::context::BuildContext;
use super::worker_properties::WorkerProperties;
use super::{balance, program, workers};
use crate::error::BuildError;
use backend::backends::BackendConfig;
use engine::pool_config::PoolConfig;

/// The maximum number of workers that are started in one step of growth.
const GROW_STEP_MAX: u32 = 16;
/// The first pause after a worker that ended too soon.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// Builds a pool that this shard owns, and its workers.
pub(crate) fn pool(
    pool: settings::Pool,
    site: BuildContext<'_>,
) -> Result<(PoolConfig, BackendConfig), BuildError> {
    let BuildContext { places, drawn, bindings, .. } = site;
    let takes = workers::takes(&pool.worker);
    let (workers_plan, properties) = workers::config(&pool, site)?;
    let is_tagged = pool.program().is_some_and(program::is_tagged);
    let WorkerProperties { slots, min_uptime, starts, recycle, own, members } = properties;
    let settings::Pool {
        name,
        worker: _,
        workers,
        queue,
        balance,
        batch,
        then,
        response_timeout: _,
        idempotent: _,
        // These limits apply to the workers.
        response: _,
        balancing,
    } = pool;
    let then = then.map(|next| places.get(&next).copied().ok_or(BuildError::NoPool(next)));
    let settings::Workers { min, max, spare, idle_timeout: idle, grow_after, grow_above } = workers;
    let settings::Queue { requests_max: length, bytes_max: bytes, timeout: wait } = queue;
    let settings::Batch { rows, bytes: batch_bytes, timeout: batch_wait } = batch;
    let mut pool = pool::Settings {
        slots,
        batch: pool::Batching { rows, bytes: batch_bytes, wait: batch_wait },
        queue: pool::QueueLimits { length, bytes, wait },
        sizing: elastic::Sizing {
            min,
            max,
            spare,
            idle,
            grow_after,
            grow_step_max: GROW_STEP_MAX,
            grow_above,
        },
        backoff: pool::BackoffSettings {
            first: BACKOFF_FIRST,
            max: starts.pause_max,
            min_uptime,
            open_after: starts.open_after,
        },
        recycle,
        members,
        ..pool::Settings::default()
    };
    let servers = workers_plan.addresses();
    let program = workers_plan.helper();
    let secret = bindings.map(|bindings| bindings.secret);
    let whole = balance::Whole { name: &name, places, servers, program, drawn, secret };
    let (balance, check) = balance::balance(whole, balance, balancing, &mut pool)?;
    let binding_uses = places.get(&name).and_then(|id| bindings?.uses.get(id).cloned());
    let config = PoolConfig {
        binding_uses,
        name,
        pool,
        then: then.transpose()?,
        balance,
        takes,
        own,
        is_tagged,
        traits: workers_plan.traits(),
    };
    Ok((config, BackendConfig { workers: workers_plan, check }))
}
