//! Notifications that wait for a program which does not read.
//!
//! A notification has no reply, so it is finished once it is written. But if more than [`UNREAD_MAX`] bytes wait for
//! the program, each notification keeps its slot and remains a request of its client until the program reads on. Then
//! the requests behind it wait in the queue and its client is paused, in the same way as when a request is not
//! answered.

use std::time::Duration;

use event::Context;
use exchange::{RequestId, Slice, WorkerId};

use super::super::deadlines::STALL;
use super::kept::PendingNotification;
use super::original::Original;
use super::{ProgramPipes, UNREAD_MAX};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::request_meta::RequestMeta;

impl ProgramPipes {
    /// Handles a written notification. It is finished, unless too many bytes wait for the program.
    pub(super) fn notify(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        (id, (body, original), meta, start): (RequestId, (Slice, Original), RequestMeta, u64),
        deadline: Duration,
    ) {
        if self.unread(cx.io) <= UNREAD_MAX {
            cx.events.push(BackendEvent::Unanswered { id });
            cx.events.push(BackendEvent::Released { worker });
            return;
        }
        self.pending_notifications.push(PendingNotification { id, body, original, meta, start });
        if self.pending_notifications.len() == 1 && self.times.send_timeout.is_none() {
            self.watch_reading(cx.io, deadline);
        }
    }

    /// Handles that the program has read on.
    pub(in crate::programs) fn handle_drained(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        deadline: Duration,
    ) {
        for notice in self.pending_notifications.drain(..) {
            cx.events.push(BackendEvent::Unanswered { id: notice.id });
            cx.events.push(BackendEvent::Released { worker });
        }
        self.cancel_unwanted(cx, worker);
        self.arm(cx.io, deadline);
    }

    /// Removes and returns the notifications that were not sent, each with its position in the offered bytes and the
    /// event that retries it.
    pub(super) fn unsent_notifications(
        &mut self,
        accepted: u64,
    ) -> impl Iterator<Item = (u64, BackendEvent)> + '_ {
        let first = self.pending_notifications.partition_point(|notice| notice.start < accepted);
        self.pending_notifications.drain(first..).map(
            |PendingNotification { id, body, original, meta, start }| {
                let payload = original.give_back(body);
                (start, BackendEvent::Retry { id, payload, meta, failed: None })
            },
        )
    }

    /// Returns how long the program may read nothing. If `send_timeout` is not set, the deadline of requests applies
    /// while notifications wait, because they have no deadline.
    pub(in crate::programs) fn reading_limit(&self, deadline: Duration) -> Option<Duration> {
        let waits = !self.pending_notifications.is_empty() && !deadline.is_zero();
        self.times.send_timeout.or_else(|| waits.then_some(deadline))
    }

    /// Schedules a check whether the program has read anything, if input waits for it.
    pub(super) fn watch_reading(&mut self, io: &mut Context<'_>, deadline: Duration) {
        if let (Some(input), Some(limit)) = (self.input, self.reading_limit(deadline))
            && io.queued(input) > 0
        {
            self.accepted_at_check = self.accepted(io);
            io.deadline_in(input, STALL, limit);
        }
    }

    /// Whether it has read nothing since the last check. If it has read and more input waits, another check is
    /// scheduled. A program whose output is paused is exempt.
    pub(in crate::programs) fn is_stalled(
        &mut self,
        io: &mut Context<'_>,
        deadline: Duration,
    ) -> bool {
        let excused = self.read_pause.is_some() || self.reading_limit(deadline).is_none();
        if excused || self.unread(io) == 0 {
            return false;
        }
        let stalled = self.accepted(io) == self.accepted_at_check;
        if !stalled {
            self.watch_reading(io, deadline);
        }
        stalled
    }
}
