//! Since when something holds, as the naive view sees it.

use std::time::Instant;

/// How long something holds.
#[derive(Debug)]
pub(crate) struct Calm {
    /// When it did not hold last, or a refusal was a reason to be sorry.
    pub(crate) since: Option<Instant>,
    /// Whether it held after the last event.
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
