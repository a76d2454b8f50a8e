//! What is said of a request that a program has: its client does not take its parts, takes them
//! again, or wants no reply any more.

use std::time::Duration;

use event::Calls;
use exchange::{RequestId, WorkerId};

use super::super::{ANSWER, GAP};
use super::{Link, UNREAD_MAX};
use crate::upward::Upward;

/// Cancelled requests of one program whose replies may still come.
const CANCELLED_MAX: usize = 1024;

impl Link {
    /// Nobody wants this reply any more. With tags, the program is told and the slot is free;
    /// without, it goes on, and its reply finds nobody. So it does when the program does not read:
    /// else what waits for it had no limit.
    pub(in super::super) fn cancel(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        up: &mut Vec<Upward>,
    ) {
        let unread = self.unread(calls);
        let Some(tags) = self.tags.as_mut().filter(|_| unread <= UNREAD_MAX) else { return };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        if self.flights.cancel(id) && tags.cancel(id, &mut out) {
            // A message of ours fits into every framing with tags.
            let written = self.write(calls, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
            up.push(Upward::Released { worker });
            self.drop_old_cancelled();
        }
        self.scratch = out;
    }

    /// Replies to what was cancelled may never come; only so many are remembered.
    fn drop_old_cancelled(&mut self) {
        if let Some(id) = self.flights.lapse(CANCELLED_MAX)
            && let Some(tags) = &mut self.tags
        {
            tags.lapse(id);
        }
    }

    /// Its output is not read for now, because the client of this request does not take its parts.
    /// Only one that serves nobody else may wait. Its silence is ours then, and ends nothing.
    pub(in super::super) fn hold(&mut self, calls: &mut Calls<'_>, id: RequestId) {
        if let (Some(output), None) = (self.output, self.held) {
            self.held = Some((id, calls.now()));
            calls.pause(output);
            calls.deadline(output, ANSWER, None);
            if self.has_gap() {
                calls.deadline(output, GAP, None);
            }
        }
    }

    /// Its output is read again, if it was not because of this request.
    pub(in super::super) fn go_on(
        &mut self,
        calls: &mut Calls<'_>,
        id: RequestId,
        deadline: Duration,
    ) {
        let Some((_, since)) = self.held.take_if(|(held, _)| *held == id) else { return };
        let now = calls.now();
        for flight in self.flights.iter_mut() {
            flight.dispatched = (flight.dispatched + now.duration_since(since)).min(now);
        }
        if let Some(output) = self.output {
            calls.resume(output);
            self.arm(calls, deadline);
            if self.is_streaming {
                self.watch_gap(calls);
            }
        }
    }

    /// Whether what it said waits for a client.
    pub(in super::super) const fn is_held(&self) -> bool {
        self.held.is_some() && self.output.is_some()
    }
}
