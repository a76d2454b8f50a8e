//! How long a program must write nothing before it counts as aligned.

use std::time::Duration;

/// The minimum silence that passes a check.
const SILENCE_MIN: Duration = Duration::from_millis(10);
/// The maximum silence that a check requires.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(100);

/// The maximum latency of a program, from which the required silence is computed.
#[derive(Debug)]
pub(super) struct Latency {
    /// Whether no program of the pool has passed a check yet. The latency is then unknown.
    is_first: bool,
    /// The number of replies, counted up to 2.
    replies: u8,
    /// The maximum time of a reply so far.
    longest: Duration,
}

impl Latency {
    /// Creates the state of a new program. `is_first`: no program of its pool has passed a check.
    pub(super) const fn new(is_first: bool) -> Self {
        Self { is_first, replies: 0, longest: Duration::ZERO }
    }

    /// Records that a reply took `took`.
    pub(super) fn handle_reply(&mut self, took: Duration) {
        // The first reply includes the start of the program, so it counts only for its own check.
        self.longest = if self.replies == 1 { took } else { self.longest.max(took) };
        self.replies = (self.replies + 1).min(2);
    }

    /// Records that a check was passed.
    pub(super) const fn handle_passed(&mut self) {
        self.is_first = false;
    }

    /// Returns how long the program must be silent.
    pub(super) fn silence(&self) -> Duration {
        if self.is_first {
            return SILENCE_MAX;
        }
        (self.longest * 2).clamp(SILENCE_MIN, SILENCE_MAX)
    }
}
