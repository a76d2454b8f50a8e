//! Requests that are rejected because of `memory_max`.

use exchange::{Cause, Outcome, Phase, PoolId, RequestId};

use super::Engine;

impl Engine {
    /// Rejects a new request, because `memory_max` was exceeded.
    #[cold]
    pub(super) fn reject_for_memory(&mut self, id: RequestId, pool: PoolId) {
        self.pools[pool].dirty = true;
        self.pools[pool].counts.requests += 1;
        let text = "the daemon holds as much memory as it may; try again later";
        self.end(id, Outcome::ended(Cause::Memory, Phase::Receive, text));
    }

    /// Rejects the oldest queued request of all pools on this shard. Returns its size in bytes.
    pub fn reject_oldest(&mut self) -> Option<usize> {
        let pools = self.pools.values_mut();
        let waiting = pools.filter_map(|served| Some((served.pool.oldest()?, served)));
        let (_, served) = waiting.min_by_key(|(since, _)| *since)?;
        served.dirty = true;
        served.pool.reject_oldest(self.now, Cause::Memory)
    }
}
