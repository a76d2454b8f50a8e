//! Logs failed requests, with at most five lines per second, cause and pool. Further lines are counted. Their number is
//! logged when the second is over or the daemon stops.

use std::time::{Duration, Instant};

use crate::printable::printable;
use exchange::{Cause, End, Peer, RequestId, Verdict};

/// The maximum number of lines per window, cause and pool.
const LINES_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Option<Instant>,
    lines: u32,
    omitted: u64,
}

impl Window {
    /// Returns when the number of omitted lines must be logged.
    fn due(&self) -> Option<Instant> {
        self.begun.filter(|_| self.omitted > 0).map(|begun| begun + WINDOW)
    }
}

/// The rate limit of one pool, by cause.
#[derive(Debug)]
pub struct ErrorLog {
    windows: Vec<Window>,
    /// The earliest time at which a window is due.
    due: Option<Instant>,
}

impl Default for ErrorLog {
    fn default() -> Self {
        let empty = Window { begun: None, lines: 0, omitted: 0 };
        Self { windows: vec![empty; Cause::ALL.len()], due: None }
    }
}

impl ErrorLog {
    /// Whether a line of this cause may be logged now. If not, the line is counted.
    fn admit(&mut self, cause: Cause, now: Instant) -> bool {
        let window = &mut self.windows[cause as usize];
        let begun = match window.begun {
            // A window with omitted lines ends when their number is logged.
            Some(begun) if window.omitted > 0 || now.duration_since(begun) < WINDOW => begun,
            _ => {
                window.lines = 0;
                *window.begun.insert(now)
            }
        };
        if window.lines < LINES_MAX {
            window.lines += 1;
            return true;
        }
        window.omitted += 1;
        let due = begun + WINDOW;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        false
    }

    /// Returns when [`Self::handle_time`] must be called next.
    pub const fn next_time(&self) -> Option<Instant> {
        self.due
    }

    /// Ends the windows that are over. Returns the number of omitted lines of each.
    fn take_due(&mut self, now: Instant) -> Vec<(Cause, u64)> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for (&cause, window) in Cause::ALL.iter().zip(&mut self.windows) {
            if window.due().is_some_and(|due| due <= now) {
                taken.push((cause, std::mem::take(&mut window.omitted)));
                window.begun = None;
            }
        }
        self.due = self.windows.iter().filter_map(Window::due).min();
        taken
    }

    /// Logs the number of lines that were omitted in windows that are over.
    pub fn handle_time(&mut self, pool: &str, now: Instant) {
        for (cause, omitted) in self.take_due(now) {
            log_omitted(pool, cause, omitted);
        }
    }

    /// Logs the number of lines that were omitted when the daemon stops.
    pub fn end_all(&mut self, pool: &str) {
        self.due = None;
        for (&cause, window) in Cause::ALL.iter().zip(&mut self.windows) {
            if window.omitted > 0 {
                log_omitted(pool, cause, std::mem::take(&mut window.omitted));
            }
        }
    }

    /// Logs a finished request, unless it was answered.
    pub fn end(
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
        self.handle_time(pool, now);
        if !self.admit(end.cause, now) {
            return;
        }
        let (cause, phase) = (end.cause.as_str(), end.phase.as_str());
        let text = printable(text);
        let verdict = end.cause.verdict().as_str();
        tracing::warn!(pool, request = %id, client = %peer, cause, phase, "{verdict}: {text}");
    }
}

fn log_omitted(pool: &str, cause: Cause, omitted: u64) {
    let (cause, verdict) = (cause.as_str(), cause.verdict().as_str());
    tracing::warn!(pool, cause, omitted, "{verdict}: further requests of the last second");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(error_log: &mut ErrorLog, cause: Cause, at: Instant, count: u32) -> usize {
        (0..count).filter(|_| error_log.admit(cause, at)).count()
    }

    #[test]
    fn a_flood_of_one_cause_is_held_back_and_its_number_is_due_when_the_second_is_over() {
        let mut error_log = ErrorLog::default();
        let start = Instant::now();
        assert_eq!(fail(&mut error_log, Cause::Full, start, 100), LINES_MAX as usize);
        let later = start + WINDOW / 2;
        assert!(error_log.admit(Cause::Row, later), "another cause is not held back");
        let end = start + WINDOW;
        assert_eq!(error_log.next_time(), Some(end));
        assert_eq!(error_log.take_due(end - Duration::from_nanos(1)), []);
        assert_eq!(error_log.take_due(end), [(Cause::Full, 95)]);
        assert_eq!((error_log.next_time(), error_log.take_due(end)), (None, vec![]));
        assert!(error_log.admit(Cause::Full, end), "the next second has lines of its own");
    }

    #[test]
    fn lines_that_are_omitted_behind_the_end_of_the_second_are_counted_with_the_others() {
        let mut error_log = ErrorLog::default();
        let start = Instant::now();
        fail(&mut error_log, Cause::Full, start, 7);
        assert!(!error_log.admit(Cause::Full, start + 2 * WINDOW));
        assert_eq!(error_log.take_due(start + 2 * WINDOW), [(Cause::Full, 3)]);
    }

    #[test]
    fn the_earliest_of_several_causes_is_due_first() {
        let mut error_log = ErrorLog::default();
        let start = Instant::now();
        let second = start + WINDOW / 4;
        fail(&mut error_log, Cause::Full, second, 6);
        fail(&mut error_log, Cause::Row, start, 7);
        assert_eq!(error_log.next_time(), Some(start + WINDOW));
        assert_eq!(error_log.take_due(start + WINDOW), [(Cause::Row, 2)]);
        assert_eq!(error_log.next_time(), Some(second + WINDOW));
        assert_eq!(error_log.take_due(second + WINDOW), [(Cause::Full, 1)]);
    }
}
