//! Evidence that a worker has started successfully.

/// Why the start of a worker counts as successful, even if the worker ends later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The worker has answered a request, although its slot is still in use.
    Answered,
    /// The worker received a request of this client, and is ending.
    Given {
        /// The number of the client.
        client: u64,
    },
}
