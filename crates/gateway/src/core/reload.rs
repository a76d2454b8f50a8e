//! Pools take over other settings, with all that they know of workers and clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use event::Calls;

use super::{Core, ServedPool};
use crate::by_worker::ByWorker;
use crate::checks::{CheckConfig, Checks};
use crate::cookies::{CookieConfig, Cookies};
use crate::outside::Outside;
use crate::pool_config::PoolConfig;
use crate::reload::PoolReload;
use crate::shares::Shares;

impl Core {
    /// Takes over other settings of all pools, in their order. Gives what an operator should know of it.
    pub(crate) fn reload(
        &mut self,
        calls: &mut Calls<'_>,
        (pools, seed): (Vec<PoolReload>, u64),
        outside: &mut Outside,
    ) -> Vec<String> {
        let now = self.now;
        let mut warnings = Vec::new();
        for PoolReload { id, plan, replaces, shares } in pools {
            let Some(served) = self.pools.get_mut(id) else { continue };
            let PoolConfig {
                name: _,
                pool,
                then,
                mut balance,
                takes,
                own: _,
                is_tagged: _,
                workers,
            } = plan;
            served.then = then;
            served.takes = takes;
            if workers.is_elsewhere() {
                continue;
            }
            let (check, cookie) = (balance.check.take(), balance.cookie.take());
            served.balance = balance;
            if let Some(own) = &mut served.own {
                own.handle_reload();
            }
            served.dirty = true;
            let room = shares.map(|Shares { tokens, slots, room, .. }| {
                served.pool.handle_slots(now, &tokens, &slots);
                room
            });
            let before = served.names();
            let weights = served.weights();
            served.pool.handle_settings(now, pool);
            if served.branch.is_none() {
                warnings.extend(served.overridden(&weights));
            }
            let names = served.names();
            for (index, name) in names.iter() {
                if before.get(index) != Some(name) {
                    served.tallies.forget(index);
                }
            }
            served.workers.handle_plan(workers, &names, room);
            served.reload_cookies(cookie, &names);
            let seed = seed.wrapping_add(id.index() as u64);
            served.reload_checks(calls, (check, seed), &names, outside);
            if replaces {
                served.pool.handle_recycle(now);
            }
        }
        self.note_feeders();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        warnings
    }
}

impl Core {
    /// A server that has a name has another address. Nobody who is with it is cut off.
    pub(crate) fn server_moved(&mut self, calls: &mut Calls<'_>, name: &str, to: SocketAddr) {
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            self.with_workers(pool, |workers, up| workers.handle_moved(calls, name, to, up));
            if let Some(checks) = &mut self.pools[pool].checks {
                checks.handle_moved(name, to);
            }
        }
    }
}

impl ServedPool {
    /// The weights of its workers in the configuration, by their names.
    fn weights(&self) -> BTreeMap<String, u32> {
        let named =
            self.pool.workers().filter_map(|view| Some((view.name?.to_owned(), view.weight)));
        named.collect()
    }

    /// Changes of weights that have no effect, because another weight was set at run time.
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

    /// What its workers are called, those among them that leave.
    fn names(&self) -> ByWorker<Option<String>> {
        let mut names = ByWorker::default();
        for view in self.pool.workers() {
            *names.at(view.index) = view.name.map(str::to_owned);
        }
        names
    }

    fn reload_cookies(&mut self, plan: Option<CookieConfig>, names: &ByWorker<Option<String>>) {
        self.cookies = None;
        let Some(mut plan) = plan else { return };
        plan.servers = names.values().cloned().map(Option::unwrap_or_default).collect();
        let berth = |name: &str| self.pool.berth_named(name);
        let mut cookies = Box::new(Cookies::new(plan, berth));
        for worker in self.pool.workers().filter_map(|view| view.worker) {
            if let (Some(_), Some(berth)) = (self.workers.home(worker), self.pool.berth(worker)) {
                cookies.handle_started(worker, berth);
            }
        }
        self.cookies = Some(cookies);
    }

    fn reload_checks(
        &mut self,
        calls: &mut Calls<'_>,
        (plan, seed): (Option<CheckConfig>, u64),
        names: &ByWorker<Option<String>>,
        outside: &mut Outside,
    ) {
        let now = calls.now();
        let Some(mut plan) = plan else {
            if let Some(mut checks) = self.checks.take() {
                checks.end_all(calls, outside);
            }
            return;
        };
        plan.arrange(names.as_slice());
        if let Some(checks) = &mut self.checks {
            return checks.handle_plan(plan, now);
        }
        let mut checks = Checks::new(&self.name, plan, seed);
        for worker in self.pool.workers().filter_map(|view| view.worker) {
            if !self.workers.is_starting(worker) {
                if let Some(address) = self.workers.home(worker) {
                    checks.handle_home(worker, address);
                }
                checks.handle_started(now, worker);
            }
        }
        self.checks = Some(Box::new(checks));
    }
}
