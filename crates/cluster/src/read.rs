//! The reads that deliver changes.

/// Which read delivered a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The watch, live.
    Live,
    /// The watch, before it had caught up: the age of the value is unknown.
    CatchUp,
    /// A fetch of a shard.
    Fetch,
    /// The read of a key after a lost race.
    Get,
}
