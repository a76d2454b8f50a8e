//! Failures in the log, so many a second of each kind and no more.

use std::time::{Duration, Instant};

use crate::printable::printable;
use exchange::{Cause, End, Peer, RequestId, Verdict};

/// Failures logged a second of one cause in one pool; the rest is counted and said.
const LINES_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

/// What was logged lately, by cause.
#[derive(Debug)]
pub(crate) struct Journal {
    windows: Vec<Window>,
}

impl Default for Journal {
    fn default() -> Self {
        let empty = Window { begun: None, lines: 0, suppressed: 0 };
        Self { windows: vec![empty; Cause::ALL.len()] }
    }
}

impl Journal {
    /// Whether a line of this cause may be written now, and how many were not since the last.
    fn admit(&mut self, cause: Cause, now: Instant) -> Option<u64> {
        let window = &mut self.windows[cause as usize];
        if window.begun.is_none_or(|begun| now.duration_since(begun) >= WINDOW) {
            window.begun = Some(now);
            window.lines = 0;
        }
        if window.lines == LINES_MAX {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }

    /// Logs an end that was not an answer.
    pub(crate) fn end(
        &mut self,
        pool: &str,
        id: RequestId,
        peer: Peer,
        end: End,
        text: &[u8],
        now: Instant,
    ) {
        if end.cause.verdict() == Verdict::Answered {
            return;
        }
        let Some(suppressed) = self.admit(end.cause, now) else { return };
        let (cause, phase) = (end.cause.word(), end.phase.word());
        let text = printable(text);
        let verdict = end.cause.verdict().word();
        tracing::warn!(pool, request = %id, client = %peer, cause, phase, suppressed, "{verdict}: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_cause_is_held_back_and_its_count_is_said() {
        let mut journal = Journal::default();
        let start = Instant::now();
        let admitted = (0..100).filter_map(|_| journal.admit(Cause::Full, start)).count();
        assert_eq!(admitted, LINES_MAX as usize);
        assert_eq!(journal.admit(Cause::Row, start), Some(0), "another cause is not held back");
        assert_eq!(journal.admit(Cause::Full, start + WINDOW), Some(95));
    }
}
