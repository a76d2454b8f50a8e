//! What other daemons share: bindings of clients, and changes of the health of servers.

use std::sync::mpsc::{SyncSender, TrySendError};

use exchange::{BindingChange, HealthNotice, PoolId, WorkerId};

use super::Engine;

impl Engine {
    /// Reports changes of the health of servers to other daemons from now on.
    pub fn share_health(&mut self, notices: SyncSender<HealthNotice>) {
        self.health_notices = Some(notices);
    }

    /// Returns the running worker with this name.
    pub fn worker_named(&self, pool: PoolId, name: &str) -> Option<WorkerId> {
        let served = self.pools.get(pool)?;
        served.pool.workers().find(|view| view.name == Some(name))?.worker
    }

    /// Sends what other daemons must learn of the bindings. It never waits and makes no system call: if there is no
    /// room, the pools keep it until the next turn.
    #[inline]
    pub fn send_binding_uses(&mut self) {
        if !self.shared_bindings.is_empty() {
            self.send_uses();
        }
    }

    #[inline(never)]
    fn send_uses(&mut self) {
        for &pool in &self.shared_bindings {
            let Some(served) = self.pools.get_mut(pool) else { continue };
            let Some(to) = &served.binding_uses else { continue };
            let uses = served.pool.take_binding_uses();
            if uses.is_empty() {
                continue;
            }
            match to.try_send(uses) {
                Ok(()) => {}
                Err(TrySendError::Full(uses)) => served.pool.return_binding_uses(uses),
                // The cluster has ended with the daemon.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }

    /// Other daemons have bound, used or unbound clients of a pool.
    pub fn handle_binding_changes(&mut self, pool: PoolId, changes: &[BindingChange]) {
        if let Some(served) = self.pools.get_mut(pool) {
            served.pool.handle_binding_changes(self.now, changes);
        }
    }
}
