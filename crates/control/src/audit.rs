//! The audit log: attempts to change something, and wrong tokens.
//!
//! Requests with a valid token and requests of permitted users of a Unix socket are always logged. Any client can send
//! other requests, so at most [`LINES_MAX`] lines per second are logged for them, and one line with the number of the
//! rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The maximum number of lines for unauthenticated requests in each [`WINDOW`].
const LINES_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Window {
    begun: Option<Instant>,
    lines: u32,
    omitted: u64,
}

/// The decision about a line.
#[derive(Debug, Eq, PartialEq)]
enum Admission {
    Write,
    Omit,
    /// The line is omitted as the first one of its window, which ends at this time.
    OmitFirst(Instant),
}

/// Limits the lines for unauthenticated requests.
#[derive(Debug, Default)]
pub(crate) struct Audit(Mutex<Window>);

impl Audit {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, now: Instant) -> Admission {
        let mut window = self.window();
        let begun = match window.begun {
            // A window with omitted lines ends when their number is written.
            Some(begun) if window.omitted > 0 || now.duration_since(begun) < WINDOW => begun,
            _ => {
                (window.begun, window.lines) = (Some(now), 0);
                now
            }
        };
        if window.lines < LINES_MAX {
            window.lines += 1;
            return Admission::Write;
        }
        window.omitted += 1;
        if window.omitted == 1 { Admission::OmitFirst(begun + WINDOW) } else { Admission::Omit }
    }

    /// Ends the window. Returns the number of lines that were omitted in it.
    fn close(&self) -> u64 {
        std::mem::take(&mut *self.window()).omitted
    }

    /// Writes the line of an unauthenticated request, unless there were too many. The number of omitted lines is
    /// written at the end of the second.
    pub(crate) fn limited(self: &Arc<Self>, write: impl FnOnce()) {
        match self.admit(Instant::now()) {
            Admission::Write => write(),
            Admission::Omit => {}
            Admission::OmitFirst(end) => {
                let audit = Arc::clone(self);
                tokio::spawn(async move {
                    sleep_until(end).await;
                    let omitted = audit.close();
                    tracing::warn!(omitted, "admin: more requests without a valid token");
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_unauthenticated_requests_is_five_lines_a_second_and_their_number() {
        let (audit, begun) = (Audit::default(), Instant::now());
        let admit = |ms| audit.admit(begun + Duration::from_millis(ms));
        assert!((0..5).all(|it| admit(it) == Admission::Write));
        assert_eq!(admit(10), Admission::OmitFirst(begun + WINDOW));
        assert!((0..100).all(|it| admit(20 + it) == Admission::Omit));
        // The task that writes the number runs late.
        assert_eq!(admit(1_200), Admission::Omit);
        assert_eq!(audit.close(), 102);
        assert_eq!(admit(1_300), Admission::Write);
        assert_eq!(audit.window().lines, 1);
    }

    #[test]
    fn a_few_lines_in_each_second_are_all_written() {
        let (audit, begun) = (Audit::default(), Instant::now());
        let admit = |ms| audit.admit(begun + Duration::from_millis(ms));
        assert!((0..50).all(|it| admit(it * 200) == Admission::Write));
        assert_eq!(audit.close(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_omitted_lines_is_written_once_at_the_end_of_the_second() {
        let audit = Arc::new(Audit::default());
        let mut written = 0;
        for _ in 0..100 {
            audit.limited(|| written += 1);
        }
        assert_eq!((written, audit.window().omitted), (5, 95));
        tokio::time::advance(WINDOW).await;
        while audit.window().omitted > 0 {
            tokio::task::yield_now().await;
        }
        audit.limited(|| written += 1);
        assert_eq!(written, 6);
    }
}
