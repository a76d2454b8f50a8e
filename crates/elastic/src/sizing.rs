//! The numbers that an operator sets.

use std::time::Duration;

/// The value of `grow_above` in [`Sizing::by_queue`]: up to 3 requests may wait without a reason to grow.
pub const QUEUE_GROWS_ABOVE: u32 = 3;

/// How many workers a pool may have, and when it starts and ends them.
///
/// The common rules are constructors: [`Sizing::fixed`], [`Sizing::prefork`], [`Sizing::on_demand`] and
/// [`Sizing::by_queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// The minimum number of workers, as far as starting them succeeds. At most `max`.
    pub min: u32,
    /// The maximum number of workers, including those that are ending. At least 1.
    pub max: u32,
    /// The number of idle workers that are kept in addition to the busy ones, as far as `max` allows.
    pub spare: u32,
    /// A worker beyond `min` and `spare` is ended if it was not needed for this time.
    pub idle: Duration,
    /// If a request has waited for this time, another worker is started. The same time passes before the next growth
    /// step.
    pub grow_after: Duration,
    /// The maximum number of workers that may be starting at the same time because of waiting requests. Growth steps
    /// start 1, 2, 4, … workers while the pressure lasts. At least 1.
    pub grow_step_max: u32,
    /// If more requests than this are waiting, workers are started immediately, regardless of the age of the requests:
    /// one worker for each request beyond this number. `None`: only the age counts.
    pub grow_above: Option<u32>,
}

impl Sizing {
    /// Always `count` workers; the load never starts or ends one. Use it for work that keeps a processor busy, and
    /// where the cost of a start must never be noticeable.
    #[must_use]
    pub fn fixed(count: u32) -> Self {
        Self { min: count, max: count, ..Self::default() }.within_limits()
    }

    /// Keeps `spare` idle workers ready before they are needed, as process managers with spare servers do. Use it for
    /// workers that start slowly, and for requests that must not wait for a start.
    #[must_use]
    pub fn prefork(min: u32, max: u32, spare: u32) -> Self {
        Self { min, max, spare, ..Self::default() }.within_limits()
    }

    /// Starts workers only when requests arrive, and ends them all when there was no request for `idle`. Use it for
    /// many pools that are seldom used.
    #[must_use]
    pub fn on_demand(max: u32) -> Self {
        Self { min: 0, max, ..Self::default() }.within_limits()
    }

    /// Grows with the length of the queue, when more than three requests wait. Use it for many short requests that
    /// arrive in bursts, and for workers that start fast.
    #[must_use]
    pub fn by_queue(min: u32, max: u32, spare: u32) -> Self {
        let grow_above = Some(QUEUE_GROWS_ABOVE);
        Self { min, max, spare, grow_above, ..Self::default() }.within_limits()
    }

    /// Returns the same settings with a fixed number of workers: `min` and `max` are `count`.
    #[must_use]
    pub const fn fixed_at(self, count: u32) -> Self {
        Self { min: count, max: count, ..self }
    }

    /// The maximum number of workers.
    #[must_use]
    pub const fn max_workers(&self) -> u32 {
        self.max
    }

    /// Whether the number of workers is always `count`.
    #[must_use]
    pub const fn is_fixed_at(&self, count: u32) -> bool {
        self.min == count && self.max == count
    }

    /// Returns the same settings with every number inside its range: `max` and `grow_step_max` are at least 1, and
    /// `min` is at most `max`.
    #[must_use]
    pub fn within_limits(self) -> Self {
        let max = self.max.max(1);
        Self { max, min: self.min.min(max), grow_step_max: self.grow_step_max.max(1), ..self }
    }
}

impl Default for Sizing {
    /// Exactly one worker, which is always running.
    fn default() -> Self {
        Self {
            min: 1,
            max: 1,
            spare: 0,
            idle: Duration::from_secs(30),
            grow_after: Duration::from_millis(10),
            grow_step_max: 32,
            grow_above: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_range_are_brought_into_it() {
        let sizing = Sizing { min: 5, max: 0, grow_step_max: 0, ..Sizing::default() };
        let sizing = sizing.within_limits();
        assert_eq!((sizing.min, sizing.max, sizing.grow_step_max), (1, 1, 1));
        assert_eq!(sizing.within_limits(), sizing);
    }

    #[test]
    fn a_number_that_is_given_holds_in_both_directions() {
        let sizing = Sizing::prefork(2, 9, 3).fixed_at(4);
        assert_eq!((sizing.min, sizing.max_workers(), sizing.spare), (4, 4, 3));
    }

    #[test]
    fn the_rules_that_people_know_are_settings() {
        let numbers = |it: Sizing| (it.min, it.max, it.spare, it.grow_above);
        assert_eq!(numbers(Sizing::fixed(7)), (7, 7, 0, None));
        assert_eq!(numbers(Sizing::fixed(0)), (0, 1, 0, None));
        assert_eq!(numbers(Sizing::prefork(2, 9, 3)), (2, 9, 3, None));
        assert_eq!(numbers(Sizing::on_demand(9)), (0, 9, 0, None));
        assert_eq!(numbers(Sizing::by_queue(5, 100, 5)), (5, 100, 5, Some(3)));
    }
}
