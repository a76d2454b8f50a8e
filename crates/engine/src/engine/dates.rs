//! The calendar time of the engine.

use super::Engine;

impl Engine {
    /// The time of this turn, in microseconds since the Unix epoch.
    pub(super) fn at_us(&mut self) -> i64 {
        self.calendar.at_us(self.now)
    }
}
