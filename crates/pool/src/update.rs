//! Updates from the owner shard of a pool to its member shards.

use exchange::WorkerId;

/// The state of one place, for a member shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerUpdate {
    /// The worker that has the place on the owner shard; `None`: the place is vacant.
    pub worker: Option<WorkerId>,
    /// Whether the worker may receive requests of clients that are bound to it.
    pub serves: bool,
    /// Whether the worker may receive requests of any client.
    pub open: bool,
    /// The effective weight.
    pub weight: u32,
    /// Why the worker receives no new requests, in the words of `why`.
    pub out: Option<&'static str>,
}

/// The state of a pool, for a member shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUpdate {
    /// Whether member shards give requests to workers. They do not while an operator has switched the fallback on.
    pub dispatches: bool,
    /// The workers, by place.
    pub places: Vec<WorkerUpdate>,
}
