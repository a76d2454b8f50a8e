//! The state of rejected connections that are answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use exchange::{Outcome, Peer};

use frontend::listener::ListenerConfig;

/// Rejected connections whose request has not been read yet.
#[derive(Debug, Default)]
pub(super) struct RefusedConnections {
    /// The number of open connections, including those already answered.
    pub(super) open: usize,
    pub(super) waiting: BTreeMap<usize, Waiting>,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) listener: Arc<ListenerConfig>,
    pub(super) peer: Peer,
    pub(super) outcome: Outcome,
}
