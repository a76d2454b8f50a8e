//! Other settings for a daemon that serves, made ready off its loops.
//!
//! What it is: everything of a configuration that may fail, done before any shard is told: names
//! resolved, files read, secrets drawn. What it must never know: a stream, a request.

use std::sync::Arc;

use exchange::PoolId;
use settings::Configuration;

use crate::drain::DrainLimits;
use crate::fleet::Fleet;
use crate::plan::{self, ListenerPlan, PlanError, PoolPlan, Site, Workshop};
use crate::shares::Shares;

/// What another configuration means for one shard. Taking it over cannot fail.
pub struct Reload {
    pub(crate) listeners: Vec<Arc<ListenerPlan>>,
    pub(crate) pools: Vec<PoolReload>,
    pub(crate) drain: DrainLimits,
}

/// One pool of it.
pub(crate) struct PoolReload {
    pub(crate) id: PoolId,
    pub(crate) plan: PoolPlan,
    /// Its programs are replaced, each once another is ready.
    pub(crate) replaces: bool,
    /// Where several shards serve it: its servers, by place.
    pub(crate) shares: Option<Shares>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("pools", &self.pools.len()).finish_non_exhaustive()
    }
}

impl Reload {
    /// What `new` means for each shard of a daemon that serves `old`, in their order. Of both,
    /// listeners and pools must be the same ([`settings::fixed`]), in whatever order: a place means the
    /// same pool as before.
    ///
    /// # Errors
    /// When a file cannot be read, handlers cannot be made, or a name has no address. Nothing has changed then.
    pub fn prepare(
        old: &Configuration,
        new: &Configuration,
        fleet: &Fleet,
        workshop: &dyn Workshop,
    ) -> Result<Vec<Self>, PlanError> {
        let mut new = new.clone();
        settings::in_order_of(old, &mut new);
        let new = &new;
        spawn::withhold(new.secret_variables())
            .map_err(|error| PlanError::Unprotected(error.to_string()))?;
        let places = fleet.pool_ids();
        let drawn = fleet.secret().map_err(|why| PlanError::NoSecret(why.to_string()))?;
        fleet.look_up(new)?;
        let site = Site { places: &places, workshop, drawn: &drawn, names: fleet.names() };
        let listeners = new.listeners.iter().cloned();
        let listeners: Vec<_> = listeners
            .map(|listener| {
                let found = fleet.listener(&listener.name);
                let id = found.ok_or_else(|| PlanError::NoSocket(listener.name.clone()))?;
                let listener = plan::listener(listener, (id, fleet.bodies(id)), &places)?;
                Ok(Arc::new(listener))
            })
            .collect::<Result<_, _>>()?;
        let shards = 0..u32::try_from(fleet.length()).unwrap_or(u32::MAX);
        let found = |pool: &settings::Pool| {
            fleet.find(&pool.name).ok_or_else(|| PlanError::NoPool(pool.name.clone()))
        };
        let ids: Vec<(PoolId, u32)> = new.pools.iter().map(found).collect::<Result<_, _>>()?;
        let shares = new.pools.iter().zip(&ids).map(|(pool, (id, _))| {
            let shared = fleet.shared(*id).zip(plan::shared_servers(pool));
            let renewed = shared.map(|(shares, servers)| shares.with(&servers));
            renewed.map(|shares| shares.ok_or_else(|| PlanError::Servers(pool.name.clone())))
        });
        let shares: Vec<Option<Shares>> =
            shares.map(Option::transpose).collect::<Result<_, _>>()?;
        let of_shard = |shard: u32| {
            let pools = old.pools.iter().zip(&new.pools).zip(&ids).zip(&shares);
            let pools = pools.map(|(((old, new), &(id, home)), shares)| {
                let (pool, shares) = (new.clone(), shares.clone());
                let plan = match (home == shard, &shares) {
                    (true, _) => plan::pool(pool, site),
                    (false, Some(_)) => plan::branch(pool, site),
                    (false, None) => plan::elsewhere(pool),
                };
                Ok(PoolReload { id, plan: plan?, replaces: settings::replaces(old, new), shares })
            });
            Ok(Self {
                listeners: listeners.clone(),
                pools: pools.collect::<Result<_, PlanError>>()?,
                drain: DrainLimits::of(&new.daemon),
            })
        };
        let reloads = shards.map(of_shard).collect::<Result<_, PlanError>>()?;
        for ((id, _), shares) in ids.into_iter().zip(shares) {
            shares.into_iter().for_each(|shares| fleet.share(id, shares));
        }
        Ok(reloads)
    }
}
