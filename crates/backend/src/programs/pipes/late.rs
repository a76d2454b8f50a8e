//! Requests that are not answered in time.
//!
//! A program that answers in order is late with all that it has, so it is killed. One that several
//! clients share goes on: what is late is taken back, and its client is told the deadline. It is
//! killed when it answers nobody:
//!
//! - it has said nothing for as long as a request may take, and all that it has is late, or of clients
//!   whose requests were late or cancelled in the same silence; or
//! - it has said nothing for [`PATIENCE`] times as long, whosever requests it has.
//!
//! Until then each request that a client has made meanwhile has its own time, so that one client's
//! slow request ends nobody else's.

use std::time::{Duration, Instant};

use event::Context;
use exchange::WorkerId;

use super::super::fault::{ExitReport, Fault};
use super::ProgramPipes;
use super::in_flight::ActiveRequest;
use flow::backend_event::BackendEvent;

/// How many deadlines a program may say nothing while it has requests that are not late.
const PATIENCE: u32 = 3;

/// Clients that are remembered to have waited in one silence.
const WAITED_MAX: usize = 64;

impl ProgramPipes {
    /// The oldest request was not answered, or nothing was said, within `limit`. Gives what the program
    /// is killed for; none: it goes on.
    pub(in crate::programs) fn handle_late(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        (limit, fault): (Duration, Fault),
        name: &str,
        events: &mut Vec<BackendEvent>,
    ) -> Option<Fault> {
        if self.tags.is_none() {
            return Some(fault);
        }
        let now = io.now();
        let is_late = |flight: &ActiveRequest| flight.dispatched + limit <= now;
        let has_late = self.in_flight.oldest().is_some_and(is_late);
        let waited = &self.waited;
        let is_of_waiting =
            |it: &ActiveRequest| is_late(it) || waited.contains(&it.meta.asker.client);
        let is_silent = |times| self.silent_until(limit * times).is_some_and(|until| until <= now);
        if is_silent(1) && self.in_flight.are_all(is_of_waiting) || is_silent(PATIENCE) {
            return Some(if has_late { fault } else { Fault::Silent(limit) });
        }
        let mut taken_back = 0_u64;
        while let Some(id) = self.in_flight.oldest().filter(|it| is_late(it)).map(|it| it.id) {
            let outcome = fault.outcome(name, &ExitReport::default());
            events.push(BackendEvent::Answered { id, outcome });
            self.take_back(io, worker, id, events);
            taken_back += 1;
        }
        if taken_back > 0 {
            // The end of each of them is in the log, as far as there is room for it.
            tracing::debug!(worker = name, taken_back, "{}", fault.message());
        }
        None
    }

    /// When it is looked at whether the program answers nobody.
    pub(super) fn patience_ends(&self, deadline: Duration) -> Option<Instant> {
        self.tags.as_ref().filter(|_| !deadline.is_zero())?;
        let is_of_waiting = |it: &ActiveRequest| self.waited.contains(&it.meta.asker.client);
        let times = if self.in_flight.are_all(is_of_waiting) { 1 } else { PATIENCE };
        self.silent_until(deadline * times)
    }

    fn silent_until(&self, limit: Duration) -> Option<Instant> {
        self.tags.as_ref().filter(|_| !limit.is_zero())?;
        self.silence.until(limit)
    }

    /// The request of this client was late, or cancelled.
    pub(super) fn note_waited(&mut self, client: u64) {
        if self.waited.len() < WAITED_MAX && !self.waited.contains(&client) {
            self.waited.push(client);
        }
    }
}
