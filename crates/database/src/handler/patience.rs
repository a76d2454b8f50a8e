//! How long rows are tried again that fail by themselves while the database works.
//!
//! While a worker waits for such a row, it stores no others. So these waits have a budget of their own,
//! which is short and grows again slowly, whatever `retry_timeout` says: a row that never succeeds can hold
//! up a pool for a part of the time only.

use std::time::{Duration, Instant};

/// The waits that are possible after a time without any.
const LEFT_MAX: Duration = Duration::from_secs(1);

/// What a batch must find left to wait at all.
const LEFT_MIN: Duration = Duration::from_millis(20);

/// The budget grows by one part in so many of the time that passes.
const GROWTH: u32 = 4;

/// The budget of a worker.
#[derive(Debug)]
pub(crate) struct Patience {
    left: Duration,
    /// When it last grew.
    grown: Instant,
}

impl Patience {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: LEFT_MAX, grown: now }
    }

    /// A batch begins. The budget does not grow within one, so that its waits have an end.
    pub(crate) fn grow(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.grown) / GROWTH;
        self.left = self.left.saturating_add(gained).min(LEFT_MAX);
        self.grown = now;
    }

    /// How long may be waited, if at all.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.left).filter(|left| *left >= LEFT_MIN)
    }

    /// So long a row was waited for.
    pub(crate) fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_take_a_part_of_the_time_at_most() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut patience = Patience::new(begin);
        let mut waited = Duration::ZERO;
        // Each batch comes after a second of other work.
        for second in 0..100 {
            patience.grow(at(second));
            while let Some(left) = patience.left() {
                let pause = left.min(Duration::from_millis(30));
                patience.spend(pause);
                waited += pause;
            }
        }
        let limit = LEFT_MAX + Duration::from_secs(100) / GROWTH;
        assert!(waited <= limit, "{waited:?}");
        assert!(waited >= limit - Duration::from_secs(2), "{waited:?}");
        patience.grow(at(3600));
        assert_eq!(patience.left(), Some(LEFT_MAX), "it never grows beyond the first budget");
        patience.grow(begin);
        assert_eq!(patience.left(), Some(LEFT_MAX));
    }
}
