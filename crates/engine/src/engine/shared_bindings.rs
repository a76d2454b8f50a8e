//! Bindings of clients that other daemons share: uses here, and changes there.

use std::sync::mpsc::TrySendError;

use exchange::{BindingChange, PoolId};

use super::Engine;

impl Engine {
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
