//! Requests from within the process of the gateway.

use std::sync::{Arc, Mutex, PoisonError};

use exchange::Outcome;

use crate::scheduled_event::Moment;

/// The name of a pool that does not exist.
pub(crate) const NOWHERE: &str = "nowhere";

/// A request and its outcomes.
#[derive(Debug)]
pub(crate) struct InternalRequest {
    pub(crate) id: u64,
    pub(crate) line: Vec<u8>,
    pub(crate) pool: &'static str,
    pub(crate) asked_at: Option<Moment>,
    pub(crate) outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl InternalRequest {
    /// Returns the reported outcomes. More than one is a violation.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
