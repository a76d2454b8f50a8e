//! How far the stream of changes was read, and of which history it is.

use crate::message::{Epoch, OperationId};
use crate::state::State;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) state: State,
    /// The watch of this connection.
    pub(crate) watch: Option<OperationId>,
    /// Whether the watch has delivered the end of the stream at its start.
    pub(crate) is_caught_up: bool,
    /// Whether the table contains everything up to `position`, so that a watch can continue there.
    pub(crate) is_based: bool,
    /// Entries that the server does not have were lost with the bucket: they are kept.
    pub(crate) is_new_history: bool,
    /// The revision of the last change that the watch delivered.
    pub(crate) position: u64,
    pub(crate) detached_ms: u64,
    pub(crate) mark: Mark,
}

/// The key `_epoch`.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    pub(crate) epoch: Option<Epoch>,
    /// The epoch that this daemon has written, or is writing.
    pub(crate) renewing: Option<Epoch>,
    /// The revision of the key; 0 if it does not exist.
    pub(crate) revision: u64,
    /// When this daemon writes the key next.
    pub(crate) due_ms: u64,
    pub(crate) is_writing: bool,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Connecting,
            watch: None,
            is_caught_up: false,
            is_based: false,
            is_new_history: true,
            position: 0,
            detached_ms: 0,
            mark: Mark::default(),
        }
    }
}
