//! Limits how long rows that fail by themselves are retried while the database works.
//!
//! While a worker waits for such a row, it stores no other rows. So these waits have a separate budget, which is short
//! and grows slowly, independent of `retry_timeout`: a row that never succeeds can delay a pool only for a part of the
//! time.

use std::time::{Duration, Instant};

/// The maximum budget: the waits that are possible after a time without waits.
const LEFT_MAX: Duration = Duration::from_secs(1);

/// The minimum budget that a batch requires to wait.
const LEFT_MIN: Duration = Duration::from_millis(20);

/// The budget grows by this fraction (1 / `GROWTH`) of the elapsed time.
const GROWTH: u32 = 4;

/// The budget of a worker.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    left: Duration,
    /// The time when the budget last grew.
    grown: Instant,
}

impl RetryBudget {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: LEFT_MAX, grown: now }
    }

    /// Grows the budget at the start of a batch. It does not grow during a batch, so that the waits of a batch end.
    pub(crate) fn grow(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.grown) / GROWTH;
        self.left = self.left.saturating_add(gained).min(LEFT_MAX);
        self.grown = now;
    }

    /// Returns how long a wait may take, if it is allowed.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.left).filter(|left| *left >= LEFT_MIN)
    }

    /// Subtracts the time that a row was waited for.
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
        let mut retry_budget = RetryBudget::new(begin);
        let mut waited = Duration::ZERO;
        // Each batch follows a second of other work.
        for second in 0..100 {
            retry_budget.grow(at(second));
            while let Some(left) = retry_budget.left() {
                let pause = left.min(Duration::from_millis(30));
                retry_budget.spend(pause);
                waited += pause;
            }
        }
        let limit = LEFT_MAX + Duration::from_secs(100) / GROWTH;
        assert!(waited <= limit, "{waited:?}");
        assert!(waited >= limit - Duration::from_secs(2), "{waited:?}");
        retry_budget.grow(at(3600));
        assert_eq!(retry_budget.left(), Some(LEFT_MAX), "it never grows beyond the first budget");
        retry_budget.grow(begin);
        assert_eq!(retry_budget.left(), Some(LEFT_MAX));
    }
}
