//! Idle connections that may be closed to free resources, and counts of what was done because descriptors were short.

use std::collections::VecDeque;
use std::time::Instant;

use exchange::ListenerId;

use flow::ids::SessionId;

/// The minimum number of milliseconds before the next search, after a search that found no idle connection.
pub(super) const SEARCH_INTERVAL_MS: u64 = 10;

/// The set of connections from which idle ones are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// The connections of this listener.
    Listener(ListenerId),
    All,
}

/// The idle connections found by the last search.
#[derive(Debug, Default)]
pub(super) struct IdleFound {
    /// The tick since which each connection is silent, and its id. The one silent longest is first.
    pub(super) found: VecDeque<(u64, SessionId)>,
    pub(super) search_after: u64,
}

/// The number of idle connections to close when the system refuses a descriptor: for a connection that waits to be
/// accepted, or for the pipes of a program.
pub(super) const CLOSE_BATCH: usize = 16;

/// The state of a shard concerning short descriptors.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    pub(super) idle_found: IdleFound,
    /// The time from which the other shards may be asked again to close idle connections.
    pub(super) ask_after: u64,
    /// The turn in which connections were closed last. Their descriptors are free at its end.
    pub(super) closed_in: u64,
    pub(super) logged: Option<Instant>,
    /// The number of connections closed and rejected since the last log line.
    pub(super) closed: u64,
    pub(super) rejected: u64,
}
