//! What time it is.

use super::Core;
use crate::calendar::DateLine;

impl Core {
    /// Now on the calendar, in microseconds since the Unix epoch.
    pub(super) fn at_us(&mut self) -> i64 {
        self.calendar.at_us(self.now)
    }

    /// The line `Date` of a message that is made now. It is written once a second.
    pub(crate) fn date_line(&mut self) -> DateLine {
        self.calendar.date_line(self.now)
    }
}
