//! One listener: whether it is watched, and when it failed.

use std::time::{Duration, Instant};

use crate::Fd;
use crate::wheel::Alarm;

/// How long a listener is set aside when nothing can be accepted.
pub(crate) const REST: Duration = Duration::from_millis(100);
/// `AcceptFailed` is told at most once in this time.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: Fd,
    /// The owner wants no connections now.
    pub(crate) paused: bool,
    /// It is set aside until its alarm rings.
    pub(crate) resting: bool,
    /// The kernel reports it.
    pub(crate) watched: bool,
    pub(crate) alarm: Alarm,
    told_at: Option<Instant>,
}

impl Listener {
    pub(crate) const fn new(fd: Fd) -> Self {
        Self {
            fd,
            paused: false,
            resting: false,
            watched: false,
            alarm: Alarm::NONE,
            told_at: None,
        }
    }

    pub(crate) const fn wants_watch(&self) -> bool {
        !self.paused && !self.resting
    }

    /// Whether a failure at `now` is to be told; if so, the next ones are not for a while.
    pub(crate) fn tells(&mut self, now: Instant) -> bool {
        let tells = self.told_at.is_none_or(|at| now.duration_since(at) >= TELL_EVERY);
        if tells {
            self.told_at = Some(now);
        }
        tells
    }
}
