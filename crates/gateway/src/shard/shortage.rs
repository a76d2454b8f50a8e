//! What a shard has done for want of descriptors.

use std::time::Instant;

use super::idle::IdleFound;

/// Idle connections that are closed when the system refuses a descriptor: for a connection that waits to be
/// accepted, and for the pipes of a program.
pub(super) const MANY: usize = 16;

/// What a shard has done for want of descriptors.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    pub(super) idle_found: IdleFound,
    /// When the other shards are asked again to close idle connections.
    pub(super) ask_after: u64,
    /// The turn in which connections were closed last. Their descriptors are free at its end.
    pub(super) closed_in: u64,
    pub(super) logged: Option<Instant>,
    /// Since the last line of the log: connections that were closed, and those that were rejected.
    pub(super) closed: u64,
    pub(super) rejected: u64,
}
