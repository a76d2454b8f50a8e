//! The share of requests that failed over the last few seconds.

use std::time::{Duration, Instant};

/// Parts of the window. One part after another is forgotten, so what counts is between 7/8 and all of it.
const PARTS: usize = 8;

/// The share of failed requests that ejects a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailRate {
    /// Percent of the requests that fail, 1 to 100.
    pub percent: u32,
    /// The time over which they are counted.
    pub window: Duration,
    /// With fewer requests in the window, the share does not count.
    pub requests_min: u32,
}

/// Good and failed requests of a worker over a window of time.
///
/// Part `turn % PARTS` is the one that is counted in; the others are older. `begun` is none before the
/// first request.
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

    /// A request ended. Gives whether the share of failures is reached.
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

    /// Empties the parts whose time is over.
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
            // The part began at a multiple of its length, unless all are empty anyway.
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
