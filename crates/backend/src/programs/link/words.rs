//! What is said of a program and of the requests that it has: a client does not take what it says,
//! takes it again, or wants no reply any more.

use std::time::Duration;

use event::Calls;
use exchange::{RequestId, WorkerId};

use super::super::deadlines::{ANSWER, FIRST, GAP, SLOW, STALL};
use super::kept::{Held, Holders};
use super::{Link, UNREAD_MAX};
use flow::backend_event::BackendEvent;

/// Cancelled requests of one program whose replies may still come.
const CANCELLED_MAX: usize = 1024;

impl Link {
    /// Nobody wants this reply any more. With tags, the program is told and the slot is free;
    /// without, it goes on, and its reply finds nobody. Where many bytes of what was cancelled wait for a program that
    /// does not read, the slot is free once it has read on: else what waits for it had no limit.
    pub(in super::super) fn cancel(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.may_take_back(calls) {
            self.take_back(calls, worker, id, up);
        } else {
            self.in_flight.note_unwanted(id);
            self.has_unwanted = true;
        }
    }

    fn may_take_back(&mut self, calls: &Calls<'_>) -> bool {
        let accepted = self.accepted(calls);
        self.cancellations.unread(accepted) <= UNREAD_MAX
    }

    /// It has read on: what nobody wants any more is cancelled, as far as it may be.
    pub(super) fn cancel_unwanted(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        if !self.has_unwanted {
            return;
        }
        let unwanted = self.in_flight.unwanted();
        self.has_unwanted = !unwanted.is_empty();
        for id in unwanted {
            if !self.may_take_back(calls) {
                return;
            }
            self.take_back(calls, worker, id, up);
        }
    }

    /// With tags, the program is told that nobody wants this reply, and the slot is free.
    pub(super) fn take_back(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(tags) = self.tags.as_mut() else { return };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let cancelled = self.in_flight.cancel(id, self.offered, calls.now());
        if let Some((client, place)) = cancelled.filter(|_| tags.cancel(id, &mut out)) {
            self.note_waited(client);
            self.cancellations.add(place.start.max(self.accepted(calls))..place.end);
            // A message of ours fits into every framing with tags.
            let written = self.write(calls, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
            if let Ok(place) = written {
                self.cancellations.add(place.start..place.end.min(self.offered));
            }
            self.close_while_ahead(calls, worker, up);
            up.push(BackendEvent::Released { worker });
            self.drop_old_cancelled();
            if !self.is_owing() {
                self.silence.pause(calls.now());
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
    pub(in super::super) fn hold(&mut self, calls: &mut Calls<'_>, id: RequestId) {
        if self.output.is_some() && self.in_flight.is_wanted(id) {
            self.held(calls).by.request.get_or_insert(id);
        }
    }

    /// The same, because the client whose own it is takes nothing of it, whether it asked or not.
    pub(in super::super) fn hush(&mut self, calls: &mut Calls<'_>) {
        if self.output.is_some() {
            self.held(calls).by.owner = true;
        }
    }

    /// Its output is not read from now on, and its silence is ours: it ends nothing, nor does it
    /// that a program reads nothing which cannot write.
    fn held(&mut self, calls: &mut Calls<'_>) -> &mut Held {
        if let (Some(output), None) = (self.output, &self.held) {
            calls.pause(output);
            for name in [ANSWER, FIRST, SLOW] {
                calls.deadline(output, name, None);
            }
            if self.has_gap() {
                calls.deadline(output, GAP, None);
            }
            if let Some(input) = self.input {
                calls.deadline(input, STALL, None);
            }
            self.silence.pause(calls.now());
        }
        let since = calls.now();
        self.held.get_or_insert_with(|| Held { since, by: Holders::default() })
    }

    /// Its output is read again, if it was not because of this request alone.
    pub(in super::super) fn go_on(
        &mut self,
        calls: &mut Calls<'_>,
        id: RequestId,
        deadline: Duration,
    ) {
        if let Some(held) = self.held.as_mut().filter(|held| held.by.request == Some(id)) {
            held.by.request = None;
            self.let_go(calls, deadline);
        }
    }

    /// The client whose own it is takes what it says again.
    pub(in super::super) fn unhush(&mut self, calls: &mut Calls<'_>, deadline: Duration) {
        if let Some(held) = self.held.as_mut().filter(|held| held.by.owner) {
            held.by.owner = false;
            self.let_go(calls, deadline);
        }
    }

    fn let_go(&mut self, calls: &mut Calls<'_>, deadline: Duration) {
        let free = |held: &mut Held| held.by.request.is_none() && !held.by.owner;
        let Some(Held { since, .. }) = self.held.take_if(free) else { return };
        let now = calls.now();
        for flight in self.in_flight.iter_mut() {
            flight.dispatched = (flight.dispatched + now.duration_since(since)).min(now);
        }
        self.watch_reading(calls, deadline);
        if self.is_owing() {
            self.silence.begin(now);
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
