//! The end of a shard, in good order.
//!
//! ```text
//!   Running ─drain▶ Asked ─▶ LastRead ─one turn▶ LastRequests ─▶ Serving ─all pools ended▶ Closing ─clients gone▶ stop
//!                      │                              │             │                         │
//!                      └────────── deadline ──────────┴─────────────┴──▶ what is left is cut ─┘
//! ```
//!
//! *Asked*: it lasts to the end of the turn in which the order came. *LastRead*: one more turn, in which
//! who has connected is still accepted, and what clients have sent by now is still taken; then
//! listeners close. *LastRequests*: framed requests are rejected as `!draining`. Each HTTP connection
//! is served until it has received a response with `Connection: close`, or until it was idle for
//! `drain_keepalive_timeout`. *Serving*: no client can submit a request any more; what was taken is
//! finished, and pools end as soon as nothing can reach them any more. *Closing*: replies are flushed
//! and clients told the end.

use std::time::{Duration, Instant};

use event::{Context, TimerId};

use flow::stream_owner::TimerOwner;
use frontend::transport::CLOSING_LINGER;

/// How a shard came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainResult {
    /// Requests that were cut off without a known outcome.
    pub cut: usize,
    /// Clients that had not read all their replies.
    pub unread: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Asked,
    LastRead,
    LastRequests,
    Serving,
    Closing,
}

/// The time limits of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainLimits {
    /// When it is cut, counted from its beginning.
    pub within: Duration,
    /// When an idle HTTP connection is closed, counted from its last activity.
    pub keepalive_timeout: Duration,
}

impl DrainLimits {
    pub(crate) const fn of(daemon: &settings::Daemon) -> Self {
        Self { within: daemon.drain_timeout, keepalive_timeout: daemon.drain_keepalive_timeout }
    }
}

#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) stage: Stage,
    pub(crate) result: DrainResult,
    pub(crate) limits: DrainLimits,
    timer: Option<TimerId>,
    until: Option<Instant>,
}

impl Drain {
    pub(crate) const fn new(limits: DrainLimits) -> Self {
        Self {
            stage: Stage::Running,
            result: DrainResult { cut: 0, unread: 0 },
            limits,
            timer: None,
            until: None,
        }
    }

    /// The limits of a drain that has not begun.
    pub(crate) const fn handle_limits(&mut self, limits: DrainLimits) {
        self.limits = limits;
    }

    pub(crate) fn begin(&mut self, io: &mut Context<'_>) {
        self.stage = Stage::Asked;
        let at = io.now() + self.limits.within;
        self.until = Some(at);
        self.timer = Some(io.timer_of(TimerOwner::Drain.key(), at));
        // Another turn must come, in which all that clients have sent is read.
        io.timer(io.now());
    }

    /// From now on only the clients' reading is waited for, up to the deadline, and a moment longer
    /// when that has passed.
    pub(crate) fn close(&mut self, io: &mut Context<'_>) {
        self.stage = Stage::Closing;
        let at = io.now() + CLOSING_LINGER;
        if let Some(timer) = self.timer {
            io.set_timer(timer, self.until.map_or(at, |until| until.max(at)));
        }
    }
}
