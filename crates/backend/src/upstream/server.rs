//! One server of a pool, without its connections.

use exchange::WorkerId;
use flow::ids::ConnectionId;
use observe::status::WorkerStatus;

/// A server that was started and has not ended.
pub(super) struct Server {
    pub(super) worker: WorkerId,
    /// Idle connections. The one used last is at the end.
    pub(super) idle: Vec<ConnectionId>,
    /// Requests in flight.
    pub(super) in_flight: u32,
    /// Set once the server gets no further requests: whether its pool requested that.
    pub(super) retired: Option<bool>,
    /// The number of answered requests.
    pub(super) served: u64,
    /// Whether a connection was established since the start.
    pub(super) reached: bool,
}

impl Server {
    /// Creates a server without connections.
    pub(super) const fn new(worker: WorkerId) -> Self {
        Self { worker, idle: Vec::new(), in_flight: 0, retired: None, served: 0, reached: false }
    }

    /// Returns the state of the server, which is displayed as `name`.
    pub(super) fn status(&self, name: String) -> WorkerStatus {
        WorkerStatus {
            name,
            pid: None,
            state: if self.retired.is_some() { "ending" } else { "serving" },
            in_flight: self.in_flight as usize,
            served: self.served,
        }
    }
}
