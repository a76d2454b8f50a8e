//! The deadlines of a program.

use std::time::{Duration, Instant};

use event::DeadlineName;

/// A deadline of a program's output: the oldest request must be answered by then.
pub(super) const ANSWER: DeadlineName = DeadlineName(0);

/// A deadline of the output: silence until then ends a reply of several frames.
pub(super) const GAP: DeadlineName = DeadlineName(1);

/// A deadline of the output: the first byte of the oldest request's reply must arrive by then.
pub(super) const FIRST: DeadlineName = DeadlineName(2);

/// A deadline of the output: the oldest request is logged as slow.
pub(super) const SLOW: DeadlineName = DeadlineName(3);

/// The deadline of a program's input: the program must have read something by then.
pub(super) const STALL: DeadlineName = DeadlineName(0);

/// The minimum time between two checks of a program that must end.
pub(super) const STOP_TIMEOUT_MIN: Duration = Duration::from_millis(20);

/// Returns when a request must be answered; `None`: there is no limit.
pub(super) fn answer_by(now: Instant, deadline: Duration) -> Option<Instant> {
    (!deadline.is_zero()).then(|| now + deadline)
}
