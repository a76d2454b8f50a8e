//! Since when a condition holds, in the naive model.

use std::time::Instant;

/// Since when a condition holds.
#[derive(Debug)]
pub(crate) struct Calm {
    /// When the condition last did not hold, or when a rejection last was a reason for the fallback.
    pub(crate) since: Option<Instant>,
    /// Whether the condition held after the last event.
    held: bool,
}

impl Default for Calm {
    fn default() -> Self {
        Self { since: None, held: true }
    }
}

impl Calm {
    pub(crate) fn note(&mut self, now: Instant, holds: bool, reason: bool) {
        if reason || !holds || !self.held {
            self.since = Some(now);
        }
        self.held = holds;
    }
}
