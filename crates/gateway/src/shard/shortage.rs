//! Idle connections that may be closed for others, and what was done so for want of descriptors.

use std::collections::VecDeque;
use std::time::Instant;

use exchange::ListenerId;

use flow::ids::SessionId;

/// After a search that found no idle connection the next is made when so many milliseconds have passed.
pub(super) const SEARCH_INTERVAL_MS: u64 = 10;

/// Whose idle connections are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// Those of this listener.
    Listener(ListenerId),
    All,
}

/// Idle connections, as the last search has found them.
#[derive(Debug, Default)]
pub(super) struct IdleFound {
    /// The tick since which each is silent, and its id; the longest silent first.
    pub(super) found: VecDeque<(u64, SessionId)>,
    pub(super) search_after: u64,
}

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
