//! The kernel's own timer, as a stream of the loop.
//!
//! The timers of the loop tick once a millisecond, which is much for lines that are due every
//! millisecond: every latency would be measured a tick too long. This one is exact to some
//! microseconds, and one is enough.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use event::{Context, Direction, Fd, StreamId, StreamLimits};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// One timer. When it rings, its stream has bytes that say nothing.
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

    /// It rang: it is not set any more.
    pub(super) fn rang(&mut self) {
        self.at = None;
    }

    /// Rings at `at`, or at once when that has passed, and at no other time.
    pub(super) fn set(&mut self, at: Instant) -> io::Result<()> {
        if self.at == Some(at) {
            return Ok(());
        }
        self.at = Some(at);
        // Zero would disarm it.
        let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}
