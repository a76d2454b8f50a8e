//! Properties of a kind of worker that affect the requests of a pool.

/// Properties of a kind of worker that affect the requests of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerTraits {
    /// Requests are sent in batches. A request in a batch is processed even if its client has left.
    pub takes_batches: bool,
    /// A worker that is down is replaced, because only a reply could show that it has recovered.
    pub replaces_down: bool,
}
