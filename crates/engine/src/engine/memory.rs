//! Requests that are rejected for want of memory.

use exchange::{Cause, Outcome, Phase, PoolId, RequestId};

use super::Engine;

impl Engine {
    /// A request has come while the daemon holds as much memory as it may.
    #[cold]
    pub(super) fn reject_for_memory(&mut self, id: RequestId, pool: PoolId) {
        self.pools[pool].dirty = true;
        self.pools[pool].counts.requests += 1;
        let text = "the daemon holds as much memory as it may; try again later";
        self.end(id, Outcome::ended(Cause::Memory, Phase::Receive, text));
    }

    /// Rejects the request that has waited longest here, in whatever pool. Returns its bytes.
    pub fn reject_oldest(&mut self) -> Option<usize> {
        let pools = self.pools.values_mut();
        let waiting = pools.filter_map(|served| Some((served.pool.oldest()?, served)));
        let (_, served) = waiting.min_by_key(|(since, _)| *since)?;
        served.dirty = true;
        served.pool.reject_oldest(self.now, Cause::Memory)
    }
}
