//! Changes to the workers and slots of a pool that several shards serve.
//!
//! A place belongs to one server forever. A new server gets a place behind all existing ones, on every shard, so that a
//! place means the same server everywhere. A server that was removed has no slots. Surplus tokens are withdrawn on the
//! owner shard as they return. Until all of them have returned the word is closed, so that each token is sent there.

use std::sync::Arc;
use std::time::Instant;

use super::Pool;
use crate::Queueable;
use crate::tokens::Tokens;
use crate::update::WorkerUpdate;

/// The state of a server for which a member shard has received no update.
const NO_UPDATE: WorkerUpdate =
    WorkerUpdate { worker: None, serves: false, open: false, weight: 0, out: None };

impl<P: Queueable> Pool<P> {
    /// Sets the slots of the workers of a pool that several shards serve, by place; 0: the worker was removed. Words of
    /// new places, which hold as many tokens, follow the existing ones. [`Self::handle_settings`] with the same workers
    /// follows.
    pub fn handle_slots(&mut self, now: Instant, words: &[Arc<Tokens>], slots: &[u32]) {
        self.begin(now);
        let Some(shared) = &mut self.shared else { return };
        shared.lengthen(words, slots);
        if !shared.is_owner {
            return;
        }
        for (place, &slots) in (0..).zip(slots) {
            let more = self.shared.as_mut().map_or(0, |shared| shared.allot(place, slots));
            self.give_back(place, more);
        }
    }

    /// Applies the updates that the owner shard sent about places before this member shard had them.
    pub(super) fn apply_pending_updates(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| !shared.is_owner) else { return };
        for place in self.worker_table.places() {
            let record = self.worker_table.at_mut(place);
            if record.owner_update.is_none() {
                let owner_update =
                    shared.update.places.get(place as usize).copied().unwrap_or(NO_UPDATE);
                record.owner_update = Some(owner_update);
                record.set_weight(Some(owner_update.weight));
            }
        }
    }
}
