//! Requests from within the gateway's own process.

use std::sync::{Arc, Mutex, PoisonError};

use exchange::Outcome;

use crate::happening::Moment;

/// The name of a pool that is not there.
pub(crate) const NOWHERE: &str = "nowhere";

/// One request and what came of it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) line: Vec<u8>,
    pub(crate) pool: &'static str,
    pub(crate) asked_at: Option<Moment>,
    pub(crate) outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl Ask {
    /// What was told of it; more than one outcome must not be.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
