//! One listener: whether it is watched, and when it failed.

use std::time::Duration;

use crate::Fd;
use crate::wheel::Alarm;

/// How long a listener is set aside when nothing can be accepted.
pub(crate) const REST: Duration = Duration::from_millis(100);

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
}

impl Listener {
    pub(crate) const fn new(fd: Fd) -> Self {
        Self { fd, paused: false, resting: false, watched: false, alarm: Alarm::NONE }
    }

    pub(crate) const fn wants_watch(&self) -> bool {
        !self.paused && !self.resting
    }
}
