//! What is said of a program and of the requests that it has: a client does not take what it says,
//! takes it again, or wants no reply any more.

use std::time::Duration;

use event::Context;
use exchange::{RequestId, WorkerId};

use super::super::deadlines::{ANSWER, FIRST, GAP, SLOW, STALL};
use super::kept::{Held, Holders};
use super::{ProgramPipes, UNREAD_MAX};
use flow::backend_event::BackendEvent;

/// Cancelled requests of one program whose replies may still come.
const CANCELLED_MAX: usize = 1024;

impl ProgramPipes {
    /// Nobody wants this reply any more. With tags, the program is told and the slot is free;
    /// without, it goes on, and its reply finds nobody. Where many bytes of what was cancelled wait for a program that
    /// does not read, the slot is free once it has read on: else what waits for it had no limit.
    pub(in super::super) fn cancel(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        id: RequestId,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.may_take_back(io) {
            self.take_back(io, worker, id, events);
        } else {
            self.in_flight.note_unwanted(id);
            self.has_unwanted = true;
        }
    }

    fn may_take_back(&mut self, io: &Context<'_>) -> bool {
        let accepted = self.accepted(io);
        self.cancellations.unread(accepted) <= UNREAD_MAX
    }

    /// It has read on: what nobody wants any more is cancelled, as far as it may be.
    pub(super) fn cancel_unwanted(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) {
        if !self.has_unwanted {
            return;
        }
        let unwanted = self.in_flight.unwanted();
        self.has_unwanted = !unwanted.is_empty();
        for id in unwanted {
            if !self.may_take_back(io) {
                return;
            }
            self.take_back(io, worker, id, events);
        }
    }

    /// With tags, the program is told that nobody wants this reply, and the slot is free.
    pub(super) fn take_back(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        id: RequestId,
        events: &mut Vec<BackendEvent>,
    ) {
        let Some(tags) = self.tags.as_mut() else { return };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let cancelled = self.in_flight.cancel(id, self.offered, io.now());
        if let Some((client, place)) = cancelled.filter(|_| tags.cancel(id, &mut out)) {
            self.note_waited(client);
            self.cancellations.add(place.start.max(self.accepted(io))..place.end);
            // A message of ours fits into every framing with tags.
            let written = self.write(io, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
            if let Ok(place) = written {
                self.cancellations.add(place.start..place.end.min(self.offered));
            }
            self.close_while_ahead(io, worker, events);
            events.push(BackendEvent::Released { worker });
            self.drop_old_cancelled();
            if !self.is_owing() {
                self.silence.pause(io.now());
            }
        }
        self.scratch = out;
    }

    /// Replies to what was cancelled may never come; only so many are remembered.
    fn drop_old_cancelled(&mut self) {
        if let Some(id) = self.in_flight.lapse(CANCELLED_MAX)
            && let Some(tags) = &mut self.tags
        {
            tags.lapse(id);
        }
    }

    /// Its output is not read for now, because the client of this request does not take its parts.
    /// Only one that serves nobody else may wait. A request whose reply has ended by the time this
    /// is carried out holds nothing: with its exchange gone, nobody would ever say to go on.
    pub(in super::super) fn pause_reply(&mut self, io: &mut Context<'_>, id: RequestId) {
        if self.output.is_some() && self.in_flight.is_wanted(id) {
            self.held(io).by.request.get_or_insert(id);
        }
    }

    /// The same, because the client whose own it is takes nothing of it, whether it asked or not.
    pub(in super::super) fn pause_program(&mut self, io: &mut Context<'_>) {
        if self.output.is_some() {
            self.held(io).by.owner = true;
        }
    }

    /// Its output is not read from now on, and its silence is ours: it ends nothing, nor does it
    /// that a program reads nothing which cannot write.
    fn held(&mut self, io: &mut Context<'_>) -> &mut Held {
        if let (Some(output), None) = (self.output, &self.held) {
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
        self.held.get_or_insert_with(|| Held { since, by: Holders::default() })
    }

    /// Its output is read again, if it was not because of this request alone.
    pub(in super::super) fn go_on(
        &mut self,
        io: &mut Context<'_>,
        id: RequestId,
        deadline: Duration,
    ) {
        if let Some(held) = self.held.as_mut().filter(|held| held.by.request == Some(id)) {
            held.by.request = None;
            self.let_go(io, deadline);
        }
    }

    /// The client whose own it is takes what it says again.
    pub(in super::super) fn unhush(&mut self, io: &mut Context<'_>, deadline: Duration) {
        if let Some(held) = self.held.as_mut().filter(|held| held.by.owner) {
            held.by.owner = false;
            self.let_go(io, deadline);
        }
    }

    fn let_go(&mut self, io: &mut Context<'_>, deadline: Duration) {
        let free = |held: &mut Held| held.by.request.is_none() && !held.by.owner;
        let Some(Held { since, .. }) = self.held.take_if(free) else { return };
        let now = io.now();
        for flight in self.in_flight.iter_mut() {
            flight.dispatched = (flight.dispatched + now.duration_since(since)).min(now);
        }
        self.watch_reading(io, deadline);
        if self.is_owing() {
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

    /// Whether what it said waits for a client.
    pub(in super::super) const fn is_held(&self) -> bool {
        self.held.is_some() && self.output.is_some()
    }
}
