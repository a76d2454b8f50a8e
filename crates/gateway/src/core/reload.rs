//! Pools take over other settings, with all that they know of workers and clients.

use event::Calls;
use std::net::SocketAddr;

use super::{Core, ServedPool};
use crate::checks::Checks;
use crate::cookies::Cookies;
use crate::outside::Outside;
use crate::plan::{CheckPlan, CookiePlan, PoolPlan};
use crate::reload::PoolReload;
use crate::shares::Shares;

impl Core {
    /// Takes over other settings of all pools, in their order.
    pub(crate) fn reload(
        &mut self,
        calls: &mut Calls<'_>,
        (pools, seed): (Vec<PoolReload>, u64),
        outside: &mut Outside,
    ) {
        let now = self.now;
        for (place, PoolReload { plan, replaces, shares }) in pools.into_iter().enumerate() {
            let served = &mut self.pools[place];
            let PoolPlan { name: _, pool, then, mut balance, takes, own: _, is_tagged: _, workers } =
                plan;
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
            served.pool.handle_settings(now, pool);
            let names = served.names();
            for place in 0..names.len() {
                if before.get(place) != names.get(place) {
                    served.tallies.forget(place);
                }
            }
            served.workers.handle_plan(workers, &names, room);
            served.reload_cookies(cookie, &names);
            let seed = seed.wrapping_add(place as u64);
            served.reload_checks(calls, (check, seed), &names, outside);
            if replaces {
                served.pool.handle_recycle(now);
            }
        }
        self.note_feeders();
    }
}

impl Core {
    /// A server that has a name has another address. Nobody who is with it is cut off.
    pub(crate) fn server_moved(&mut self, calls: &mut Calls<'_>, name: &str, to: SocketAddr) {
        for place in 0..self.pools.len() {
            self.with_workers(place, |workers, up| workers.handle_moved(calls, name, to, up));
            if let Some(checks) = &mut self.pools[place].checks {
                checks.handle_moved(name, to);
            }
        }
    }
}

impl ServedPool {
    /// What its workers are called, by their places, those among them that leave.
    fn names(&self) -> Vec<Option<String>> {
        let mut names = Vec::new();
        for view in self.pool.workers() {
            let place = view.place as usize;
            if names.len() <= place {
                names.resize(place + 1, None);
            }
            names[place] = view.name.map(str::to_owned);
        }
        names
    }

    fn reload_cookies(&mut self, plan: Option<CookiePlan>, names: &[Option<String>]) {
        self.cookies = None;
        let Some(mut plan) = plan else { return };
        plan.servers = names.iter().cloned().map(Option::unwrap_or_default).collect();
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
        (plan, seed): (Option<CheckPlan>, u64),
        names: &[Option<String>],
        outside: &mut Outside,
    ) {
        let now = calls.now();
        let Some(mut plan) = plan else {
            if let Some(mut checks) = self.checks.take() {
                checks.end_all(calls, outside);
            }
            return;
        };
        plan.arrange(names);
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
