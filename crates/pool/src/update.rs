//! What the home of a pool tells the shards that serve it too.

use exchange::WorkerId;

/// What a branch is to know of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerUpdate {
    /// The worker that has it at home; none: nobody.
    pub worker: Option<WorkerId>,
    /// Whether those that are bound to it may be given to it.
    pub serves: bool,
    /// Whether anybody may.
    pub open: bool,
    /// Its weight in force.
    pub weight: u32,
    /// Why it takes no part, in the words of `why`.
    pub out: Option<&'static str>,
}

/// What a branch is to know of its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUpdate {
    /// Branches give requests to workers. They do not while an operator has switched the fallback on.
    pub gives: bool,
    /// By place.
    pub places: Vec<WorkerUpdate>,
}
