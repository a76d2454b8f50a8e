//! Complete frames of a program that clients share which are not valid messages. An example is `NaN` in a message: many
//! libraries write it, but JSON does not allow it.
//!
//! A frame has an end, so the next one can be read. The invalid frame is discarded. Otherwise one client could end the
//! requests of all clients by what it makes a program write. A request in flight that such a frame names fails. The
//! program is replaced only if it writes several invalid frames in a row that name no request.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Unreadable {
    /// The number since the last reply.
    in_a_row: u8,
    /// The number since the last log line; `why` is the reason of the last one.
    unlogged: u64,
    why: &'static str,
    logged_at: Option<Instant>,
}

/// The number without a reply between them after which the program is killed.
const IN_A_ROW_MAX: u8 = 8;

/// The minimum interval between two log lines about one program.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

impl Unreadable {
    /// Counts a frame. Returns true if there are too many.
    pub(super) const fn handle_frame(&mut self, why: &'static str) -> bool {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.handle_reply_to_one(why);
        self.in_a_row >= IN_A_ROW_MAX
    }

    /// Counts a frame that names the request which it answers. The program continues.
    pub(super) const fn handle_reply_to_one(&mut self, why: &'static str) {
        self.unlogged = self.unlogged.saturating_add(1);
        self.why = why;
    }

    pub(super) const fn handle_reply(&mut self) {
        self.in_a_row = 0;
    }

    /// Logs the number, if the last log line is old enough.
    pub(super) fn report(&mut self, now: Instant, name: &str) {
        let is_due = self.logged_at.is_none_or(|logged_at| logged_at + LOG_INTERVAL <= now);
        if self.unlogged == 0 || !is_due {
            return;
        }
        let (count, why) = (std::mem::take(&mut self.unlogged), self.why);
        self.logged_at = Some(now);
        tracing::warn!(
            worker = name,
            count,
            "printed an invalid message, which was dropped: {why} (NaN and Infinity are not JSON)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_without_a_reply_between_them_are_too_many() {
        let mut unreadable = Unreadable::default();
        for _ in 0..3 {
            for _ in 1..IN_A_ROW_MAX {
                assert!(!unreadable.handle_frame("why"));
            }
            for _ in 0..IN_A_ROW_MAX {
                unreadable.handle_reply_to_one("why");
            }
            unreadable.handle_reply();
        }
        let all: Vec<_> = (0..IN_A_ROW_MAX).map(|_| unreadable.handle_frame("why")).collect();
        assert_eq!(all.iter().position(|it| *it), Some(usize::from(IN_A_ROW_MAX) - 1));
    }

    #[test]
    fn it_is_said_once_in_a_while() {
        let (mut unreadable, now) = (Unreadable::default(), Instant::now());
        unreadable.handle_frame("why");
        unreadable.report(now, "a");
        assert_eq!(unreadable.unlogged, 0);
        unreadable.handle_frame("why");
        unreadable.report(now + LOG_INTERVAL / 2, "a");
        assert_eq!(unreadable.unlogged, 1, "it is kept for the next time");
        unreadable.report(now + LOG_INTERVAL, "a");
        assert_eq!(unreadable.unlogged, 0);
    }
}
