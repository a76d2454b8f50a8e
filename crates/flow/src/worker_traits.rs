//! What the kind of workers means for the requests of a pool.

/// What the kind of its workers means for the requests of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerTraits {
    /// They are given batches: what is in one goes with it, whoever still wants it.
    pub takes_batches: bool,
    /// Another is to take the place of one that is down: what only an answer can show, that it serves
    /// again, would never be seen.
    pub replaces_down: bool,
}
