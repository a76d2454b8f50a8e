//! Reload of a pool: new settings apply, and the state of workers and clients is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use exchange::{ByWorker, PoolId};
use pool::Tokens;

use super::{Engine, ServedPool};
use crate::cookies::{CookieConfig, Cookies};
use crate::pool_config::PoolConfig;
use flow::backend_effect::Roster;

impl Engine {
    /// Applies new settings to a pool. `replaces`: its workers are replaced one at a time, when the replacement is
    /// ready; `shares`: the slots of the workers of a pool that several shards serve. Warnings for the operator are
    /// added to `warnings`. Returns its workers; `None`: this shard does not serve the pool.
    pub fn reload(
        &mut self,
        id: PoolId,
        (config, replaces): (PoolConfig, bool),
        shares: Option<(&[Arc<Tokens>], &[u32])>,
        warnings: &mut Vec<String>,
    ) -> Option<Roster> {
        let now = self.now;
        let served = self.pools.get_mut(id)?;
        let PoolConfig {
            name: _,
            pool,
            then,
            mut balance,
            takes,
            own: _,
            is_tagged: _,
            traits,
            binding_uses: _,
        } = config;
        served.then = then;
        served.takes = takes;
        if served.member_shard.is_none() && self.shard_link.off_shard(id).is_some() {
            return None;
        }
        let cookie = balance.cookie.take();
        served.balance = balance;
        served.traits = traits;
        if let Some(own) = &mut served.own {
            own.handle_reload();
        }
        served.dirty = true;
        if let Some((tokens, slots)) = shares {
            served.pool.handle_slots(now, tokens, slots);
        }
        let before = served.names();
        let weights = served.weights();
        served.pool.handle_settings(now, pool);
        if served.member_shard.is_none() {
            warnings.extend(served.overridden(&weights));
        }
        let names = served.names();
        for (index, name) in names.iter() {
            if before.get(index) != Some(name) {
                served.tallies.forget(index);
            }
        }
        served.reload_cookies(cookie, &names);
        let running = served.pool.workers().filter_map(|view| view.worker).collect();
        if replaces {
            served.pool.handle_recycle(now);
        }
        Some(Roster { names, running })
    }
}

impl ServedPool {
    /// The configured weights of its workers, by name.
    fn weights(&self) -> BTreeMap<String, u32> {
        let named =
            self.pool.workers().filter_map(|view| Some((view.name?.to_owned(), view.weight)));
        named.collect()
    }

    /// Warnings about changed weights that have no effect, because another weight was set at run time.
    fn overridden(&self, before: &BTreeMap<String, u32>) -> Vec<String> {
        let overridden = |view: pool::WorkerView<'_>| {
            let (name, set) = (view.name?, view.weight_set?);
            let before = before.get(name).filter(|before| **before != view.weight)?;
            let pool = &self.name;
            (set != view.weight).then(|| {
                format!(
                    "worker {name} of pool {pool} keeps the weight {set} that was set at run time: the file \
                     says {} now, and said {before} before; `roadstead ctl weight {pool} {name} default` \
                     follows the file",
                    view.weight
                )
            })
        };
        self.pool.workers().filter_map(overridden).collect()
    }

    /// The names of its workers, including those that are being removed.
    fn names(&self) -> ByWorker<Option<String>> {
        let mut names = ByWorker::default();
        for view in self.pool.workers() {
            *names.at(view.index) = view.name.map(str::to_owned);
        }
        names
    }

    fn reload_cookies(&mut self, config: Option<CookieConfig>, names: &ByWorker<Option<String>>) {
        let before = self.cookies.take();
        let Some(mut config) = config else { return };
        // Workers without names are identified by their ids.
        if names.values().any(Option::is_some) {
            config.servers = names.values().cloned().map(Option::unwrap_or_default).collect();
        }
        let affinity_target = |name: &str| self.pool.affinity_target_named(name);
        let mut cookies = Box::new(Cookies::new(config, affinity_target));
        if let Some(before) = before {
            cookies.take_over(*before);
        }
        for worker in self.pool.workers().filter_map(|view| view.worker) {
            if let Some(affinity_target) = self.pool.affinity_target(worker) {
                cookies.handle_started(worker, affinity_target);
            }
        }
        self.cookies = Some(cookies);
    }
}
