//! What time it is.

use super::Engine;

impl Engine {
    /// Now on the calendar, in microseconds since the Unix epoch.
    pub(super) fn at_us(&mut self) -> i64 {
        self.calendar.at_us(self.now)
    }
}
