//! Control messages about a program and its requests: a client stops reading, reads again, or no longer wants a reply.

use std::time::Duration;

use event::Context;
use exchange::{RequestId, WorkerId};

use super::super::deadlines::{ANSWER, FIRST, GAP, SLOW, STALL};
use super::kept::{PausedBy, ReadPause};
use super::{ProgramPipes, UNREAD_MAX};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

/// The maximum number of cancelled requests of one program whose replies may still arrive.
const CANCELLED_MAX: usize = 1024;

impl ProgramPipes {
    /// Cancels a request whose reply is unwanted. With tags, a cancellation is sent to the program and the slot is
    /// free. Without tags, the program continues and its reply is discarded. If more than [`UNREAD_MAX`] bytes of
    /// cancelled requests and cancellations are unread, the slot is freed only after the program has read on; otherwise
    /// the unread input would have no limit.
    pub(in super::super) fn cancel(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
    ) {
        if self.may_take_back(cx.io) {
            self.take_back(cx, worker, id);
        } else {
            self.in_flight.note_unwanted(id);
            self.has_unwanted = true;
        }
    }

    fn may_take_back(&mut self, io: &Context<'_>) -> bool {
        let accepted = self.accepted(io);
        self.cancellations.unread(accepted) <= UNREAD_MAX
    }

    /// Cancels unwanted requests, as far as allowed, after the program has read on.
    pub(super) fn cancel_unwanted(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        if !self.has_unwanted {
            return;
        }
        let unwanted = self.in_flight.unwanted();
        self.has_unwanted = !unwanted.is_empty();
        for id in unwanted {
            if !self.may_take_back(cx.io) {
                return;
            }
            self.take_back(cx, worker, id);
        }
    }

    /// With tags, sends a cancellation of this request to the program and frees the slot.
    pub(super) fn take_back(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
    ) {
        let Some(tags) = self.tags.as_mut() else { return };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let cancelled = self.in_flight.cancel(id, self.offered, cx.io.now());
        if let Some((client, place)) = cancelled.filter(|_| tags.cancel(id, &mut out)) {
            self.note_waiting_client(client);
            self.cancellations.add(place.start.max(self.accepted(cx.io))..place.end);
            // Our own messages fit into every framing with tags.
            let written = self.write(cx.io, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
            if let Ok(place) = written {
                self.cancellations.add(place.start..place.end.min(self.offered));
            }
            self.close_while_ahead(cx, worker);
            cx.events.push(BackendEvent::Released { worker });
            self.drop_old_cancelled();
            if !self.owes_reply() {
                self.silence.pause(cx.io.now());
            }
        }
        self.scratch = out;
    }

    /// Replies to cancelled requests may never arrive, so only [`CANCELLED_MAX`] are remembered.
    fn drop_old_cancelled(&mut self) {
        if let Some(id) = self.in_flight.lapse(CANCELLED_MAX)
            && let Some(tags) = &mut self.tags
        {
            tags.lapse(id);
        }
    }

    /// Stops reading the output, because the client of this request does not read its reply. Allowed only for a program
    /// that serves no other client. If the reply has already ended, nothing is paused: its exchange no longer exists,
    /// so no message would resume reading.
    pub(in super::super) fn pause_reply(&mut self, io: &mut Context<'_>, id: RequestId) {
        if self.output.is_some() && self.in_flight.is_wanted(id) {
            self.read_pause(io).by.request.get_or_insert(id);
        }
    }

    /// Stops reading the output, because the client of a session program reads nothing, whether it sent a request or
    /// not.
    pub(in super::super) fn pause_program(&mut self, io: &mut Context<'_>) {
        if self.output.is_some() {
            self.read_pause(io).by.owner = true;
        }
    }

    /// Stops reading the output. From now on the silence is caused by the daemon, so no deadline of the output applies.
    /// The deadline for reading does not apply either: a program that cannot write may not read.
    fn read_pause(&mut self, io: &mut Context<'_>) -> &mut ReadPause {
        if let (Some(output), None) = (self.output, &self.read_pause) {
            io.pause(output);
            for name in [ANSWER, FIRST, SLOW] {
                io.deadline(output, name, None);
            }
            if self.has_gap() {
                io.deadline(output, GAP, None);
            }
            if let Some(input) = self.input {
                io.deadline(input, STALL, None);
            }
            self.silence.pause(io.now());
        }
        let since = io.now();
        self.read_pause.get_or_insert_with(|| ReadPause { since, by: PausedBy::default() })
    }

    /// Reads the output again, if it was paused because of this request alone.
    pub(in super::super) fn resume_reply(
        &mut self,
        io: &mut Context<'_>,
        id: RequestId,
        deadline: Duration,
    ) {
        if let Some(read_pause) =
            self.read_pause.as_mut().filter(|read_pause| read_pause.by.request == Some(id))
        {
            read_pause.by.request = None;
            self.resume_output(io, deadline);
        }
    }

    /// Handles that the client of a session program reads again.
    pub(in super::super) fn resume_program(&mut self, io: &mut Context<'_>, deadline: Duration) {
        if let Some(read_pause) = self.read_pause.as_mut().filter(|read_pause| read_pause.by.owner)
        {
            read_pause.by.owner = false;
            self.resume_output(io, deadline);
        }
    }

    fn resume_output(&mut self, io: &mut Context<'_>, deadline: Duration) {
        let free =
            |read_pause: &mut ReadPause| read_pause.by.request.is_none() && !read_pause.by.owner;
        let Some(ReadPause { since, .. }) = self.read_pause.take_if(free) else { return };
        let now = io.now();
        for flight in self.in_flight.iter_mut() {
            flight.dispatched = (flight.dispatched + now.duration_since(since)).min(now);
        }
        self.watch_reading(io, deadline);
        if self.owes_reply() {
            self.silence.begin(now);
        }
        if let Some(output) = self.output {
            io.resume(output);
            self.arm(io, deadline);
            if self.is_streaming {
                self.watch_gap(io);
            }
        }
    }

    /// Whether output of the program waits for a client.
    pub(in super::super) const fn is_held(&self) -> bool {
        self.read_pause.is_some() && self.output.is_some()
    }
}
