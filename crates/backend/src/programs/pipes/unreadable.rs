//! Whole frames of a program that clients share which are no messages: `NaN` in one, for example, which many
//! libraries write and no JSON has.
//!
//! A frame has an end, so the next one can be read, and nobody gets this one. One client could otherwise end
//! the requests of all by what it has a program say. A request in flight that such a frame
//! names ends by it. Only a program that says nothing but frames which name no request is replaced.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Unreadable {
    /// Since the last reply.
    in_a_row: u8,
    /// Since it was last said, and why the last one is none.
    untold: u64,
    why: &'static str,
    told: Option<Instant>,
}

/// So many without a reply between them, and it is not trusted any more.
const IN_A_ROW_MAX: u8 = 8;

/// How often the log says it of one program.
const TOLD_EVERY: Duration = Duration::from_secs(10);

impl Unreadable {
    /// One more. True when there are too many.
    pub(super) const fn handle_frame(&mut self, why: &'static str) -> bool {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.handle_reply_to_one(why);
        self.in_a_row >= IN_A_ROW_MAX
    }

    /// One more, which tells the request that it replies to. A program that replies so goes on.
    pub(super) const fn handle_reply_to_one(&mut self, why: &'static str) {
        self.untold = self.untold.saturating_add(1);
        self.why = why;
    }

    pub(super) const fn handle_reply(&mut self) {
        self.in_a_row = 0;
    }

    /// Says it, if it was not said lately.
    pub(super) fn report(&mut self, now: Instant, name: &str) {
        let is_due = self.told.is_none_or(|told| told + TOLD_EVERY <= now);
        if self.untold == 0 || !is_due {
            return;
        }
        let (count, why) = (std::mem::take(&mut self.untold), self.why);
        self.told = Some(now);
        tracing::warn!(
            worker = name,
            count,
            "said what is no message, which nobody gets: {why} (NaN and Infinity are not JSON)"
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
        assert_eq!(unreadable.untold, 0);
        unreadable.handle_frame("why");
        unreadable.report(now + TOLD_EVERY / 2, "a");
        assert_eq!(unreadable.untold, 1, "it is kept for the next time");
        unreadable.report(now + TOLD_EVERY, "a");
        assert_eq!(unreadable.untold, 0);
    }
}
