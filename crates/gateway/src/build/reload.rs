//! Prepares a reload outside of the loops of the shards.
//!
//! What it is: all steps of a new configuration that may fail, done before any shard is notified: names are resolved,
//! files read, secrets drawn. What it must never depend on: a stream, a request.

use std::sync::Arc;

use exchange::PoolId;
use settings::Configuration;

use super::context::{BuildContext, HandlerRegistry};
use super::listener::listener;
use super::member_shard::{member_shard, off_shard};
use super::pool::pool;
use crate::drain::DrainLimits;
use crate::error::BuildError;
use crate::fleet::Fleet;
use crate::reload::{PoolReload, Reload};
use crate::shared_upstreams::{SharedUpstreams, shared_servers};

impl Reload {
    /// Builds the reload of each shard, in their order, for a daemon whose configuration changes from `old` to `new`.
    /// Both must have the same listeners and pools ([`settings::restart_required`]), in any order: an index refers to the same
    /// pool as before.
    ///
    /// # Errors
    /// A file cannot be read, handlers cannot be created, or a name has no address. Nothing has changed in this case.
    pub fn prepare(
        old: &Configuration,
        new: &Configuration,
        fleet: &Fleet,
        handler_registry: &dyn HandlerRegistry,
    ) -> Result<Vec<Self>, BuildError> {
        let mut new = new.clone();
        settings::in_order_of(old, &mut new);
        let new = &new;
        spawn::withhold(new.secret_variables())
            .map_err(|error| BuildError::Unprotected(error.to_string()))?;
        let places = fleet.pool_ids();
        let drawn = fleet.secret().map_err(|why| BuildError::NoSecret(why.to_string()))?;
        fleet.look_up(new)?;
        let site = BuildContext {
            places: &places,
            handler_registry,
            drawn: &drawn,
            names: fleet.names(),
            bindings: fleet.bindings(),
        };
        let listeners = new.listeners.iter().cloned();
        let listeners: Vec<_> = listeners
            .map(|listener| {
                let found = fleet.listener(&listener.name);
                let id = found.ok_or_else(|| BuildError::NoSocket(listener.name.clone()))?;
                let listener = self::listener(listener, (id, fleet.bodies(id)), &places)?;
                Ok(Arc::new(listener))
            })
            .collect::<Result<_, _>>()?;
        let shards = 0..u32::try_from(fleet.length()).unwrap_or(u32::MAX);
        let found = |pool: &settings::Pool| {
            fleet.find(&pool.name).ok_or_else(|| BuildError::NoPool(pool.name.clone()))
        };
        let ids: Vec<(PoolId, u32)> = new.pools.iter().map(found).collect::<Result<_, _>>()?;
        let shares = new.pools.iter().zip(&ids).map(|(pool, (id, _))| {
            let shared = fleet.shared(*id).zip(shared_servers(pool));
            let renewed = shared.map(|(shares, servers)| shares.with(&servers));
            renewed.map(|shares| shares.ok_or_else(|| BuildError::Servers(pool.name.clone())))
        });
        let shares: Vec<Option<SharedUpstreams>> =
            shares.map(Option::transpose).collect::<Result<_, _>>()?;
        let of_shard = |shard: u32| {
            let pools = old.pools.iter().zip(&new.pools).zip(&ids).zip(&shares);
            let pools = pools.map(|(((old, new), &(id, owner)), shares)| {
                let (next, shares) = (new.clone(), shares.clone());
                let (config, backend) = match (owner == shard, &shares) {
                    (true, _) => pool(next, site)?,
                    (false, Some(_)) => member_shard(next, site)?,
                    (false, None) => off_shard(next, site),
                };
                let replaces = settings::replaces(old, new);
                Ok(PoolReload { id, config, backend, replaces, shares })
            });
            Ok(Self {
                listeners: listeners.clone(),
                pools: pools.collect::<Result<_, BuildError>>()?,
                drain: DrainLimits::of(&new.daemon),
            })
        };
        let reloads = shards.map(of_shard).collect::<Result<_, BuildError>>()?;
        for ((id, _), shares) in ids.into_iter().zip(shares) {
            shares.into_iter().for_each(|shares| fleet.share(id, shares));
        }
        Ok(reloads)
    }
}
