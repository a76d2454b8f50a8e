//! The clock of the client. Replicas get the time as an argument.

use std::time::{Duration, Instant};

/// Counts milliseconds since its creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now_ms(self) -> u64 {
        // A replica subtracts times, so they do not begin at 0.
        const START: Duration = Duration::from_secs(1);
        u64::try_from((self.0.elapsed() + START).as_millis()).unwrap_or(u64::MAX)
    }
}
