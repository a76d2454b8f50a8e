//! A timer of the kernel (timerfd), as a stream of the event loop.
//!
//! The timers of the loop have a tick of 1 ms. For lines that are due every millisecond this is too coarse: each
//! latency would be measured one tick too long. This timer is exact to a few microseconds, and one timer is enough.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use event::{Context, Direction, Fd, StreamId, StreamLimits};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// One timer. When it expires, its stream has bytes without a meaning.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    stream: StreamId,
    at: Option<Instant>,
}

impl Alarm {
    pub(super) fn new(io: &mut Context<'_>) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let watched = Fd::from(timer.try_clone()?);
        let stream = io.adopt(watched, Direction::In, StreamLimits::default());
        Ok(Self { timer, stream, at: None })
    }

    pub(super) fn is(&self, stream: StreamId) -> bool {
        self.stream == stream
    }

    /// Records that the timer has expired and is no longer set.
    pub(super) fn expired(&mut self) {
        self.at = None;
    }

    /// Sets the timer to expire only at `at`, or immediately if `at` has passed.
    pub(super) fn set(&mut self, at: Instant) -> io::Result<()> {
        if self.at == Some(at) {
            return Ok(());
        }
        self.at = Some(at);
        // Zero would disarm the timer.
        let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}
