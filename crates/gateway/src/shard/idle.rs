//! Idle connections that may be closed for others.

use std::collections::VecDeque;

use exchange::ListenerId;

use crate::exchanges::SessionId;

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
