//! Other workers and other slots of a pool that several shards serve.
//!
//! A place is a server's for good: one that comes later stands behind all that were there before, on
//! every shard, so that whatever is said of a place means the same server. A server that left has no
//! slots. Tokens that are too many are kept back at home as they come: until all have come the word is
//! closed, so that each comes there.

use std::sync::Arc;
use std::time::Instant;

use super::Pool;
use crate::Queueable;
use crate::tokens::Tokens;
use crate::update::WorkerUpdate;

/// What a branch knows of a server of which its home has told nothing.
const UNTOLD: WorkerUpdate =
    WorkerUpdate { worker: None, serves: false, open: false, weight: 0, out: None };

impl<P: Queueable> Pool<P> {
    /// The workers of a pool that several shards serve have so many slots from now on, by place; none:
    /// it left. Words of further places, which hold as many tokens, stand behind those that were there.
    /// [`Self::handle_settings`] with the same workers follows.
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

    /// What its home said of places before this branch knew them is known of them now.
    pub(super) fn tell_new_places(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| !shared.is_owner) else { return };
        for place in self.worker_table.places() {
            let record = self.worker_table.at_mut(place);
            if record.told.is_none() {
                let told = shared.update.places.get(place as usize).copied().unwrap_or(UNTOLD);
                record.told = Some(told);
                record.set_weight(Some(told.weight));
            }
        }
    }
}
