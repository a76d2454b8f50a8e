//! What the monotonic clock is on the calendar.

use std::time::Instant;

use super::Core;

/// Relates the monotonic clock to the calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) instant: Instant,
    pub(crate) unix_us: i64,
}

impl Epoch {
    fn at_us(self, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.instant).as_micros();
        self.unix_us.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// The calendar of a shard.
pub(super) struct Calendar {
    epoch: Epoch,
    /// The last moment that was asked for. One turn is one moment.
    dated: (Instant, i64),
}

impl Calendar {
    pub(super) const fn new(epoch: Epoch) -> Self {
        Self { epoch, dated: (epoch.instant, epoch.unix_us) }
    }
}

impl Core {
    /// Now on the calendar, in microseconds since the Unix epoch.
    pub(super) fn at_us(&mut self) -> i64 {
        let Calendar { epoch, dated } = &mut self.calendar;
        if dated.0 != self.now {
            *dated = (self.now, epoch.at_us(self.now));
        }
        dated.1
    }
}
