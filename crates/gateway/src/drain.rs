//! The end of a shard, in good order.
//!
//! ```text
//!   Running ─drain▶ LastRead ─one turn▶ Serving ─all pools ended▶ Closing ─clients gone▶ stop
//!                      │                   │                         │
//!                      └───── deadline ────┴──▶ what is left is cut ─┘
//! ```
//!
//! *LastRead*: listeners are closed; what clients have sent is still taken. *Serving*: their lines
//! are refused as `!draining`; what was taken is finished, and pools end as soon as nothing can
//! reach them any more. *Closing*: replies are flushed and clients told the end.

use std::time::{Duration, Instant};

use event::{Calls, TimerId};

/// How a shard came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainResult {
    /// Requests that were cut off without a known outcome.
    pub cut: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    LastRead,
    Serving,
    Closing,
}

/// How long clients may take to read the last replies.
const CLOSING_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) stage: Stage,
    pub(crate) result: DrainResult,
    within: Duration,
    timer: Option<TimerId>,
}

impl Drain {
    pub(crate) const fn new(within: Duration) -> Self {
        Self { stage: Stage::Running, result: DrainResult { cut: 0 }, within, timer: None }
    }

    pub(crate) fn begin(&mut self, calls: &mut Calls<'_>) {
        self.stage = Stage::LastRead;
        let at = calls.now() + self.within;
        self.timer = Some(calls.timer(at));
        // Another turn must come, in which all that clients have sent is read.
        calls.timer(calls.now());
    }

    pub(crate) fn is_timer(&self, timer: TimerId) -> bool {
        self.timer == Some(timer)
    }

    /// From now on only the clients' reading is waited for.
    pub(crate) fn close(&mut self, calls: &mut Calls<'_>) {
        self.stage = Stage::Closing;
        let at: Instant = calls.now() + CLOSING_MAX;
        if let Some(timer) = self.timer {
            calls.set_timer(timer, at);
        }
    }
}
