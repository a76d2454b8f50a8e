//! Notifications that wait for a program which does not read.
//!
//! Nothing is answered to a notification, so it is done with once it is written. But where more than
//! [`UNREAD_MAX`] waits for the program, each keeps its slot and stays its client's request until the
//! program has read on: then what is behind it waits in the queue, and its client is paused, as they
//! are where a request is not answered.

use std::time::Duration;

use event::Calls;
use exchange::{RequestId, Slice, WorkerId};

use super::super::deadlines::STALL;
use super::asked::Asked;
use super::kept::Notice;
use super::{Link, UNREAD_MAX};
use flow::backend_event::BackendEvent;
use flow::request_meta::RequestMeta;

impl Link {
    /// A notification was written. It has ended, unless too much waits for the program.
    pub(super) fn notify(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        (id, (body, asked), meta, start): (RequestId, (Slice, Asked), RequestMeta, u64),
        deadline: Duration,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.unread(calls) <= UNREAD_MAX {
            up.push(BackendEvent::Unanswered { id });
            up.push(BackendEvent::Released { worker });
            return;
        }
        self.notices.push(Notice { id, body, asked, meta, start });
        if self.notices.len() == 1 && self.times.write_stall.is_none() {
            self.watch_reading(calls, deadline);
        }
    }

    /// The program has read on.
    pub(in crate::programs) fn handle_drained(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        deadline: Duration,
        up: &mut Vec<BackendEvent>,
    ) {
        for notice in self.notices.drain(..) {
            up.push(BackendEvent::Unanswered { id: notice.id });
            up.push(BackendEvent::Released { worker });
        }
        self.cancel_unwanted(calls, worker, up);
        self.arm(calls, deadline);
    }

    /// Those that have not left us: where each stands in what was offered, and that it goes to another.
    pub(super) fn unsent_notices(
        &mut self,
        accepted: u64,
    ) -> impl Iterator<Item = (u64, BackendEvent)> + '_ {
        let first = self.notices.partition_point(|notice| notice.start < accepted);
        self.notices.drain(first..).map(|Notice { id, body, asked, meta, start }| {
            let payload = asked.give_back(body);
            (start, BackendEvent::Retry { id, payload, meta, failed: None })
        })
    }

    /// How long the program may read nothing. Where `write_stall` is not set, notifications wait for as
    /// long as a request may, for no deadline is theirs.
    pub(in crate::programs) fn reading_limit(&self, deadline: Duration) -> Option<Duration> {
        let waits = !self.notices.is_empty() && !deadline.is_zero();
        self.times.write_stall.or_else(|| waits.then_some(deadline))
    }

    /// Looks later at whether it has read anything, if something waits for it.
    pub(super) fn watch_reading(&mut self, calls: &mut Calls<'_>, deadline: Duration) {
        if let (Some(input), Some(limit)) = (self.input, self.reading_limit(deadline))
            && calls.queued(input) > 0
        {
            self.stalled_at = self.accepted(calls);
            calls.deadline_in(input, STALL, limit);
        }
    }

    /// Whether it has read nothing since its reading was last looked at. If it has, and more waits,
    /// it is looked at again later. One whose output is not read is excused.
    pub(in crate::programs) fn is_stalled(
        &mut self,
        calls: &mut Calls<'_>,
        deadline: Duration,
    ) -> bool {
        let excused = self.held.is_some() || self.reading_limit(deadline).is_none();
        if excused || self.unread(calls) == 0 {
            return false;
        }
        let stalled = self.accepted(calls) == self.stalled_at;
        if !stalled {
            self.watch_reading(calls, deadline);
        }
        stalled
    }
}
