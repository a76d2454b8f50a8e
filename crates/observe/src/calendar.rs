//! Converts monotonic time to calendar time.

use std::time::Instant;

use exchange::civil_from_days;

/// A header line such as `Date: Sun, 06 Nov 1994 08:49:37 GMT`, with its CRLF (RFC 9110 §5.6.7).
pub type DateLine = [u8; 37];

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];

/// One time on both clocks, which relates the monotonic clock to the calendar.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The time on the monotonic clock.
    pub instant: Instant,
    /// The same time in microseconds since the Unix epoch.
    pub unix_us: i64,
}

impl Epoch {
    fn at_us(self, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.instant).as_micros();
        self.unix_us.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// The calendar of a shard. It caches the last conversion.
#[derive(Debug)]
pub struct Calendar {
    epoch: Epoch,
    /// The last time that was converted. All calls in one turn have the same time.
    dated: (Instant, i64),
    /// The second of the cached line, and the line.
    second: i64,
    line: DateLine,
}

impl Calendar {
    /// Creates a calendar that starts at `epoch`.
    pub fn new(epoch: Epoch) -> Self {
        let second = epoch.unix_us.div_euclid(1_000_000);
        let dated = (epoch.instant, epoch.unix_us);
        Self { epoch, dated, second, line: date_line(second) }
    }

    /// Returns `now` in microseconds since the Unix epoch.
    pub fn at_us(&mut self, now: Instant) -> i64 {
        let Self { epoch, dated, .. } = self;
        if dated.0 != now {
            *dated = (now, epoch.at_us(now));
        }
        dated.1
    }

    /// Returns the `Date` header line at `now`. It is formatted once a second.
    pub fn date_line(&mut self, now: Instant) -> DateLine {
        let second = self.at_us(now).div_euclid(1_000_000);
        let Self { second: written, line, .. } = self;
        if second != *written {
            (*written, *line) = (second, date_line(second));
        }
        *line
    }
}

/// Returns the `Date` header line for a Unix time in seconds.
fn date_line(second: i64) -> DateLine {
    let (year, month, day, time) = calendar(second);
    let mut line = *b"Date: Thu, 00 Jan 0000 00:00:00 GMT\r\n";
    let mut two = |place: usize, number: i64| {
        for (place, digit) in [(place, number / 10), (place + 1, number)] {
            line[place] = b'0' + u8::try_from(digit.rem_euclid(10)).unwrap_or(0);
        }
    };
    two(11, day.into());
    two(18, year / 100);
    two(20, year);
    two(23, time / 3600);
    two(26, time / 60 % 60);
    two(29, time % 60);
    let weekday = second.div_euclid(86_400).rem_euclid(7);
    line[6..9].copy_from_slice(DAYS[usize::try_from(weekday).unwrap_or(0)]);
    line[14..17].copy_from_slice(MONTHS[usize::from(month - 1)].as_bytes());
    line
}

pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns year, month, day and second of the day in UTC, for a Unix time in seconds.
pub fn calendar(seconds: i64) -> (i64, u8, u8, i64) {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let small = |number: i64| u8::try_from(number).unwrap_or(0);
    (year, small(month), small(day), seconds.rem_euclid(86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_date() {
        for (second, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_210_096, "Thu, 29 Feb 2024 12:34:56 GMT"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
        ] {
            let line = String::from_utf8(date_line(second).to_vec()).expect("it is text");
            assert_eq!(line, format!("Date: {date}\r\n"));
        }
    }
}
