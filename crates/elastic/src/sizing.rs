//! The numbers that an operator sets.

use std::time::Duration;

/// Of [`Sizing::by_queue`]: as many may wait without a reason to grow.
pub const QUEUE_GROWS_ABOVE: u32 = 3;

/// How many workers a pool may have, and when it gets more or fewer of them.
///
/// The rules that people know are settings of it: see [`Sizing::fixed`], [`Sizing::prefork`],
/// [`Sizing::on_demand`] and [`Sizing::by_queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Never fewer, as far as starting them succeeds. At most `max`.
    pub min: u32,
    /// Never more, those that are about to end included. At least 1.
    pub max: u32,
    /// Kept idle beyond the busy ones, as far as `max` allows.
    pub spare: u32,
    /// A worker beyond `min` and `spare` that was not needed for so long is ended.
    pub idle: Duration,
    /// A request that waited so long is a reason to start another worker; as long again passes
    /// before the next step.
    pub grow_after: Duration,
    /// Growth steps start 1, 2, 4, … workers while the pressure lasts. Never are more than so
    /// many starting at once because of waiting requests. At least 1.
    pub grow_step_max: u32,
    /// More waiting requests than this are a reason to start workers at once, whatever their age:
    /// one for each beyond it. None: only age counts.
    pub grow_above: Option<u32>,
}

impl Sizing {
    /// Always so many: nothing is ever started or ended for the load's sake. For work that fills a
    /// processor, and where the cost of a start must never be seen.
    #[must_use]
    pub fn fixed(count: u32) -> Self {
        Self { min: count, max: count, ..Self::default() }.within_limits()
    }

    /// Some are kept ready before they are needed, as process managers with spare servers do. For
    /// workers that start slowly, and requests that must not wait for one.
    #[must_use]
    pub fn prefork(min: u32, max: u32, spare: u32) -> Self {
        Self { min, max, spare, ..Self::default() }.within_limits()
    }

    /// None until somebody asks, and none again once nobody did for `idle`. For many pools that
    /// are seldom used.
    #[must_use]
    pub fn on_demand(max: u32) -> Self {
        Self { min: 0, max, ..Self::default() }.within_limits()
    }

    /// Grows with the length of the queue: when more than three requests wait. For many short
    /// requests that come in bursts, and workers that start fast.
    #[must_use]
    pub fn by_queue(min: u32, max: u32, spare: u32) -> Self {
        let grow_above = Some(QUEUE_GROWS_ABOVE);
        Self { min, max, spare, grow_above, ..Self::default() }.within_limits()
    }

    /// The same, except that there are always so many.
    #[must_use]
    pub const fn held_at(self, count: u32) -> Self {
        Self { min: count, max: count, ..self }
    }

    /// How many there are at most.
    #[must_use]
    pub const fn most(&self) -> u32 {
        self.max
    }

    /// Whether so many are all that there are ever to be.
    #[must_use]
    pub const fn is_fixed_at(&self, count: u32) -> bool {
        self.min == count && self.max == count
    }

    /// The same with every number inside its range: `max` and `grow_step_max` are at least 1, and
    /// `min` is at most `max`.
    #[must_use]
    pub fn within_limits(self) -> Self {
        let max = self.max.max(1);
        Self { max, min: self.min.min(max), grow_step_max: self.grow_step_max.max(1), ..self }
    }
}

impl Default for Sizing {
    /// One worker that is always there, and no more than it.
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
        let sizing = Sizing::prefork(2, 9, 3).held_at(4);
        assert_eq!((sizing.min, sizing.most(), sizing.spare), (4, 4, 3));
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
