//! The share of requests that failed during the last seconds.

use std::time::{Duration, Instant};

/// The number of parts of the window. Parts expire one by one, so the counted time is between 7/8 and 8/8 of the
/// window.
const PARTS: usize = 8;

/// The share of failed requests that ejects a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailRate {
    /// The percentage of requests that fail, 1 to 100.
    pub percent: u32,
    /// The period over which they are counted.
    pub window: Duration,
    /// The minimum number of requests in the window. With fewer requests, the share does not count.
    pub requests_min: u32,
}

/// The successful and failed requests of a worker over a window of time.
///
/// Part `turn % PARTS` is the current one; the others are older. `begun` is `None` before the first request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    begun: Option<Instant>,
    turn: usize,
    parts: [Part; PARTS],
}

#[derive(Clone, Copy, Debug)]
struct Part {
    requests: u32,
    failed: u32,
}

const EMPTY: Part = Part { requests: 0, failed: 0 };

impl Window {
    pub(super) const fn new() -> Self {
        Self { begun: None, turn: 0, parts: [EMPTY; PARTS] }
    }

    /// Counts a finished request. Returns whether the share of failures is reached.
    pub(super) fn handle(&mut self, rate: &FailRate, now: Instant, good: bool) -> bool {
        self.forget(rate.window, now);
        let part = &mut self.parts[self.turn % PARTS];
        part.requests = part.requests.saturating_add(1);
        part.failed = part.failed.saturating_add(u32::from(!good));
        if good {
            return false;
        }
        let sum = |of: fn(&Part) -> u32| self.parts.iter().map(of).map(u64::from).sum::<u64>();
        let (requests, failed) = (sum(|part| part.requests), sum(|part| part.failed));
        requests >= u64::from(rate.requests_min)
            && failed * 100 >= requests * u64::from(rate.percent)
    }

    /// Empties the parts that have expired.
    fn forget(&mut self, window: Duration, now: Instant) {
        let length = (window / 8).max(Duration::from_millis(1));
        let begun = *self.begun.get_or_insert(now);
        let passed = now.saturating_duration_since(begun).as_micros() / length.as_micros();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        for _ in 0..passed.min(8) {
            self.turn = (self.turn + 1) % PARTS;
            self.parts[self.turn] = EMPTY;
        }
        if passed > 0 {
            // The part began at a multiple of its length, unless all parts are empty.
            self.begun = begun.checked_add(length.saturating_mul(passed)).or(Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: FailRate =
        FailRate { percent: 50, window: Duration::from_secs(8), requests_min: 4 };

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn the_share_counts_from_the_least_number_of_requests_on() {
        let (mut window, now) = (Window::new(), start());
        assert!(!window.handle(&RATE, now, false));
        assert!(!window.handle(&RATE, now, false));
        assert!(!window.handle(&RATE, now, true));
        assert!(window.handle(&RATE, now, false), "3 of 4");
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let (mut window, now) = (Window::new(), start());
        let at = |ms| now + Duration::from_millis(ms);
        (0..3).for_each(|_| assert!(!window.handle(&RATE, at(0), false)));
        (0..3).for_each(|_| assert!(!window.handle(&RATE, at(7500), true)));
        assert!(window.handle(&RATE, at(7999), false), "4 of 7");
        assert!(!window.handle(&RATE, at(8000), false), "2 of 5");
        assert!(!window.handle(&RATE, at(1 << 40), false), "1 of 1, long after");
    }
}
