//! How long a program must print nothing to be in step with what it was asked.

use std::time::Duration;

/// The shortest silence that passes a check.
const SILENCE_MIN: Duration = Duration::from_millis(10);
/// The longest silence that a check asks for.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(100);

/// The longest latency of a program, and the silence that follows from it.
#[derive(Debug)]
pub(super) struct Latency {
    /// No program of the pool has passed a check yet: what its latency is nobody can say.
    is_first: bool,
    /// Replies, up to 2.
    replies: u8,
    /// The longest time of a reply so far.
    longest: Duration,
}

impl Latency {
    /// `is_first`: no program of its pool has passed a check.
    pub(super) const fn new(is_first: bool) -> Self {
        Self { is_first, replies: 0, longest: Duration::ZERO }
    }

    /// A reply took so long.
    pub(super) fn handle_reply(&mut self, took: Duration) {
        // The first took as long as the start of the program, too: it counts for its own check alone.
        self.longest = if self.replies == 1 { took } else { self.longest.max(took) };
        self.replies = (self.replies + 1).min(2);
    }

    /// A check was passed.
    pub(super) const fn handle_passed(&mut self) {
        self.is_first = false;
    }

    /// How long it must be silent.
    pub(super) fn silence(&self) -> Duration {
        if self.is_first {
            return SILENCE_MAX;
        }
        (self.longest * 2).clamp(SILENCE_MIN, SILENCE_MAX)
    }
}
