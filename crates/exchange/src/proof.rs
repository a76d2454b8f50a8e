//! What shows that a worker started.

/// Why the start of a worker has not failed, whatever becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It has answered a request, though its slot stays in use.
    Answered,
    /// It was given a request of this client, and ends.
    Given {
        /// Its number.
        client: u64,
    },
}
