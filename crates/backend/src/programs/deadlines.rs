//! The deadlines of a program.

use std::time::{Duration, Instant};

use event::DeadlineName;

/// A deadline of a program's output: its oldest request must be answered by then.
pub(super) const ANSWER: DeadlineName = DeadlineName(0);

/// And the other: silence ends a reply of several frames.
pub(super) const GAP: DeadlineName = DeadlineName(1);

/// And another: the oldest request has no byte of its reply yet.
pub(super) const FIRST: DeadlineName = DeadlineName(2);

/// And the last: the oldest request takes long enough for a line in the log.
pub(super) const SLOW: DeadlineName = DeadlineName(3);

/// The deadline of a program's input: it must have read something by then.
pub(super) const STALL: DeadlineName = DeadlineName(0);

/// The shortest time between two looks at a program that is to end.
pub(super) const GRACE_MIN: Duration = Duration::from_millis(20);

/// When a request must be answered; none: it may take any time.
pub(super) fn answer_by(now: Instant, deadline: Duration) -> Option<Instant> {
    (!deadline.is_zero()).then(|| now + deadline)
}
