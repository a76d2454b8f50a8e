//! What is going on, for the admin address.

use std::time::Duration;

/// A shard at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its listeners.
    pub listeners: Vec<ListenerStatus>,
    /// Its pools.
    pub pools: Vec<PoolStatus>,
    /// Requests on their way.
    pub exchanges: usize,
    /// Whether it takes no more requests.
    pub draining: bool,
}

/// A listener at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerStatus {
    /// Its name.
    pub name: String,
    /// Open connections.
    pub connections: u32,
    /// Connections accepted since the start.
    pub accepted: u64,
}

/// A pool at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Requests that wait.
    pub queued: u32,
    /// Bytes that they hold.
    pub queued_bytes: usize,
    /// How long the oldest has waited.
    pub oldest: Option<Duration>,
    /// Whether requests are refused because no worker can be started.
    pub down: bool,
    /// Its workers.
    pub workers: Vec<WorkerStatus>,
}

/// A worker at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// Its process, where it is one.
    pub pid: Option<u32>,
    /// `starting`, `serving` or `ending`.
    pub state: &'static str,
    /// Requests in its hands.
    pub in_flight: usize,
    /// Requests that it answered.
    pub served: u64,
}
