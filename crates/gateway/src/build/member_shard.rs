//! Builds pools that another shard owns, and the part of them that this shard serves.

use super::context::BuildContext;
use super::workers;
use crate::error::BuildError;
use backend::backends::BackendConfig;
use engine::balance::BalanceConfig;
use engine::pool_config::{PoolConfig, SessionWorkersConfig};
use flow::worker_traits::WorkerTraits;

/// Builds the part of a shared pool of another owner shard that this shard serves.
pub(crate) fn member_shard(
    pool: settings::Pool,
    site: BuildContext<'_>,
) -> Result<(PoolConfig, BackendConfig), BuildError> {
    let (mut config, mut backend) = super::pool::pool(pool, site)?;
    // The owner shard checks the servers and reports the results.
    backend.check = None;
    config.pool.health.checked_first = false;
    config.pool.health.checked = false;
    backend.workers.make_member_shard();
    Ok((config, backend))
}

/// Builds a pool that only its owner shard serves. No worker of it runs here.
pub(crate) fn off_shard(
    pool: settings::Pool,
    site: BuildContext<'_>,
) -> (PoolConfig, BackendConfig) {
    let is_own = |program: &settings::Program| program.dispatch == settings::Dispatch::Session;
    let own = pool.program().is_some_and(is_own);
    let no_workers = elastic::Sizing { min: 0, max: 1, spare: 0, ..elastic::Sizing::default() };
    let config = PoolConfig {
        binding_uses: None,
        name: pool.name.clone(),
        pool: pool::Settings { sizing: no_workers, ..pool::Settings::default() },
        // Its clients need space in the queues of all pools of the chain.
        then: pool.then.as_ref().and_then(|next| site.places.get(next).copied()),
        balance: BalanceConfig::default(),
        takes: workers::takes(&pool.worker),
        own: own.then_some(SessionWorkersConfig { reset: None, tells_apart: false }),
        is_tagged: pool.program().is_some_and(super::program::is_tagged),
        traits: WorkerTraits::default(),
    };
    (config, BackendConfig::off_shard())
}
