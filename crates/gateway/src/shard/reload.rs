//! Applies a reload to a shard, between two events.

use std::collections::BTreeSet;
use std::sync::Arc;

use event::Context;
use exchange::PoolId;

use super::Shard;
use crate::drain::Stage;
use crate::reload::{PoolReload, Reload};

impl Shard {
    /// Applies a reload and returns warnings for the operator. Returns `None`, and changes nothing, if a drain has
    /// begun.
    pub(super) fn reload(&mut self, io: &mut Context<'_>, reload: Reload) -> Option<Vec<String>> {
        if self.drain.stage != Stage::Running {
            return None;
        }
        let Reload { listeners, pools, drain } = reload;
        self.drain.handle_limits(drain);
        let now = self.engine.now;
        for config in listeners {
            let Some(listener) = self.listeners.get_mut(config.connection.id) else { continue };
            let addresses = config.addresses.clone();
            self.listener_limits
                .at(config.connection.id)
                .handle_addresses(addresses, now, self.seed);
            listener.config = config;
        }
        for session in self.sessions.values_mut() {
            let config = Arc::clone(&self.listeners[session.listener_id()].config.connection);
            let mut cx = session_context!(self, io);
            session.handle_listener(&config, &mut cx);
        }
        Some(self.reload_pools(io, pools))
    }

    /// The names of the workers of a pool.
    fn worker_names(&self, pool: PoolId) -> BTreeSet<String> {
        let served = self.engine.pools.get(pool);
        let workers = served.into_iter().flat_map(|served| served.pool.workers());
        workers.filter_map(|view| view.name.map(str::to_owned)).collect()
    }

    /// Applies what operators have stored on all machines for the servers that a reload has added to a pool.
    fn apply_stored(&mut self, id: PoolId, before: &BTreeSet<String>) {
        if self.fleet.owner(id) != self.engine.shard_link.me() {
            return;
        }
        let Some(pool) = self.engine.pools.get(id).map(|served| served.name.clone()) else {
            return;
        };
        for worker in self.worker_names(id).difference(before) {
            self.engine.report_added(id, worker);
            if let Some(order) = self.fleet.stored_order(&pool, worker) {
                self.engine.order(&pool, &order);
            }
        }
    }

    fn reload_pools(&mut self, io: &mut Context<'_>, pools: Vec<PoolReload>) -> Vec<String> {
        let mut warnings = Vec::new();
        for PoolReload { id, config, backend, replaces, shares } in pools {
            let config = (config, replaces);
            let slots = shares.as_ref().map(|it| (&it.tokens[..], &it.slots[..]));
            let before = self.worker_names(id);
            let Some(roster) = self.engine.reload(id, config, slots, &mut warnings) else {
                continue;
            };
            let room = shares.map(|shares| shares.room);
            let seed = self.seed.wrapping_add(id.index() as u64);
            self.backends.reload(io, id, (backend, &roster), room, seed);
            self.apply_stored(id, &before);
        }
        self.engine.note_chains();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        warnings
    }
}
