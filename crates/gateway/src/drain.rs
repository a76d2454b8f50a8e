//! The end of a shard, in good order.
//!
//! ```text
//!   Running ─drain▶ Asked ─▶ LastRead ─one turn▶ Serving ─all pools ended▶ Closing ─clients gone▶ stop
//!                      │                            │                         │
//!                      └────────── deadline ────────┴──▶ what is left is cut ─┘
//! ```
//!
//! *Asked*: it lasts to the end of the turn in which the order came. *LastRead*: one more turn, in which
//! who has connected is still accepted, and what clients have sent by now is still taken; then
//! listeners close. *Serving*: their lines
//! are refused as `!draining`; what was taken is finished, and pools end as soon as nothing can
//! reach them any more. *Closing*: replies are flushed and clients told the end.

use std::time::{Duration, Instant};

use event::{Calls, TimerId};

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
    Serving,
    Closing,
}

/// How long a client that has all its replies may keep its side open before the daemon ends.
pub(crate) const CLOSING_LINGER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) stage: Stage,
    pub(crate) result: DrainResult,
    within: Duration,
    timer: Option<TimerId>,
    until: Option<Instant>,
}

impl Drain {
    pub(crate) const fn new(within: Duration) -> Self {
        Self {
            stage: Stage::Running,
            result: DrainResult { cut: 0, unread: 0 },
            within,
            timer: None,
            until: None,
        }
    }

    /// How long a drain that has not begun may take.
    pub(crate) const fn handle_within(&mut self, within: Duration) {
        self.within = within;
    }

    pub(crate) fn begin(&mut self, calls: &mut Calls<'_>) {
        self.stage = Stage::Asked;
        let at = calls.now() + self.within;
        self.until = Some(at);
        self.timer = Some(calls.timer(at));
        // Another turn must come, in which all that clients have sent is read.
        calls.timer(calls.now());
    }

    pub(crate) fn is_timer(&self, timer: TimerId) -> bool {
        self.timer == Some(timer)
    }

    /// From now on only the clients' reading is waited for, up to the deadline, and a moment longer
    /// when that has passed.
    pub(crate) fn close(&mut self, calls: &mut Calls<'_>) {
        self.stage = Stage::Closing;
        let at = calls.now() + CLOSING_LINGER;
        if let Some(timer) = self.timer {
            calls.set_timer(timer, self.until.map_or(at, |until| until.max(at)));
        }
    }
}
