//! The numbers that an operator sets.

use std::time::Duration;

/// How many workers a pool may have, and when it gets more or fewer of them.
///
/// Prefork is `min == max`; on demand is `min == 0`, `spare == 0`.
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
}

impl Sizing {
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
}
