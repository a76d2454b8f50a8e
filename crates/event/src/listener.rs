//! One listener: whether it is watched, and whether it is paused after a failure.

use std::time::Duration;

use crate::Fd;
use crate::wheel::Alarm;

/// How long a listener is paused after an accept failed.
pub(crate) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: Fd,
    /// The handler has paused it.
    pub(crate) paused: bool,
    /// It is paused after a failure, until its alarm fires.
    pub(crate) retry_pending: bool,
    /// The kernel reports it.
    pub(crate) watched: bool,
    pub(crate) alarm: Alarm,
}

impl Listener {
    pub(crate) const fn new(fd: Fd) -> Self {
        Self { fd, paused: false, retry_pending: false, watched: false, alarm: Alarm::NONE }
    }

    pub(crate) const fn should_watch(&self) -> bool {
        !self.paused && !self.retry_pending
    }
}
