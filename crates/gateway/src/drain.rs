//! The graceful shutdown of a shard.
//!
//! ```text
//!   Running ─drain▶ Asked ─▶ LastRead ─one turn▶ LastRequests ─▶ Serving ─all pools ended▶ Closing ─clients gone▶ stop
//!                      │                              │             │                         │
//!                      └────────── deadline ──────────┴─────────────┴──▶ the rest is cut off ─┘
//! ```
//!
//! *Asked* lasts to the end of the turn in which the order arrived. *LastRead* is one more turn: pending connections
//! are still accepted, and everything that clients have sent by now is still read. Then the listeners close. In
//! *LastRequests*, framed requests are rejected as `!draining`. Each HTTP connection is served until it has received a
//! response with `Connection: close`, or until it was idle for `drain_keepalive_timeout`. In *Serving*, no client can
//! submit a request any more. The accepted requests are finished, and a pool ends as soon as no request can reach it.
//! In *Closing*, replies are flushed and the connections of clients are ended.

use std::time::{Duration, Instant};

use event::{Context, TimerId};

use flow::stream_owner::TimerOwner;
use frontend::transport::CLOSING_LINGER;

/// How the drain of a shard ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainResult {
    /// The number of requests that were cut off without a known outcome.
    pub cut: usize,
    /// The number of clients that had not read all their replies.
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
    /// The time after its start at which the drain is cut off.
    pub within: Duration,
    /// The time after its last activity at which an idle HTTP connection is closed.
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

    /// Sets the limits of a drain that has not begun.
    pub(crate) const fn handle_limits(&mut self, limits: DrainLimits) {
        self.limits = limits;
    }

    pub(crate) fn begin(&mut self, io: &mut Context<'_>) {
        self.stage = Stage::Asked;
        let at = io.now() + self.limits.within;
        self.until = Some(at);
        self.timer = Some(io.timer_of(TimerOwner::Drain.key(), at));
        // Forces another turn, in which everything that clients have sent is read.
        io.timer(io.now());
    }

    /// Enters the stage in which the shard only waits for clients to read their replies. The wait ends at the deadline,
    /// or [`CLOSING_LINGER`] from now if that is later.
    pub(crate) fn close(&mut self, io: &mut Context<'_>) {
        self.stage = Stage::Closing;
        let at = io.now() + CLOSING_LINGER;
        if let Some(timer) = self.timer {
            io.set_timer(timer, self.until.map_or(at, |until| until.max(at)));
        }
    }
}
