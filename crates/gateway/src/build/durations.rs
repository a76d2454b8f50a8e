//! Settings of time.

use std::time::Duration;

/// A duration setting of which zero means never.
pub(super) fn unless_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
