//! Requests that are not answered in time.
//!
//! A program that answers in order is late with all its requests, so it is killed. A program that several clients share
//! continues: a late request is cancelled, and its client receives a deadline error. The program is killed if it
//! answers no client:
//!
//! - it has written nothing for the duration of one deadline, and every request in flight is late or belongs to a
//!   client whose requests were late or cancelled during the same silence; or
//! - it has written nothing for [`PATIENCE`] deadlines, whichever clients its requests belong to.
//!
//! Until then each later request has its full deadline, so the slow request of one client does not end the requests of
//! others.

use std::time::{Duration, Instant};

use exchange::WorkerId;

use super::super::fault::{ExitReport, Fault};
use super::ProgramPipes;
use super::in_flight::ActiveRequest;
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

/// The number of deadlines for which a program may write nothing while it has requests that are not late.
const PATIENCE: u32 = 3;

/// The maximum number of clients that are remembered as waiting during one silence.
const WAITING_CLIENTS_MAX: usize = 64;

impl ProgramPipes {
    /// Handles that the oldest request was not answered, or that nothing was written, within `limit`. Returns the fault
    /// for which the program must be killed; `None`: it continues.
    pub(in crate::programs) fn handle_late(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        (limit, fault): (Duration, Fault),
        name: &str,
    ) -> Option<Fault> {
        if self.tags.is_none() {
            return Some(fault);
        }
        let now = cx.io.settled();
        let is_late = |flight: &ActiveRequest| flight.dispatched + limit <= now;
        let has_late = self.in_flight.oldest().is_some_and(is_late);
        let waiting_clients = &self.waiting_clients;
        let is_of_waiting =
            |it: &ActiveRequest| is_late(it) || waiting_clients.contains(&it.meta.asker.client);
        let is_silent = |times| self.silent_until(limit * times).is_some_and(|until| until <= now);
        if is_silent(1) && self.in_flight.are_all(is_of_waiting) || is_silent(PATIENCE) {
            return Some(if has_late { fault } else { Fault::Silent(limit) });
        }
        let mut taken_back = 0_u64;
        while let Some(id) = self.in_flight.oldest().filter(|it| is_late(it)).map(|it| it.id) {
            let outcome = fault.outcome(name, &ExitReport::default());
            cx.events.push(BackendEvent::Answered { id, outcome });
            self.take_back(cx, worker, id);
            taken_back += 1;
        }
        if taken_back > 0 {
            // The end of each request is in the log, up to its limit.
            tracing::debug!(worker = name, taken_back, "{}", fault.message());
        }
        None
    }

    /// Returns when to check whether the program answers no client.
    pub(super) fn next_silence_check(&self, deadline: Duration) -> Option<Instant> {
        self.tags.as_ref().filter(|_| !deadline.is_zero())?;
        let is_of_waiting =
            |it: &ActiveRequest| self.waiting_clients.contains(&it.meta.asker.client);
        let times = if self.in_flight.are_all(is_of_waiting) { 1 } else { PATIENCE };
        self.silent_until(deadline * times)
    }

    fn silent_until(&self, limit: Duration) -> Option<Instant> {
        self.tags.as_ref().filter(|_| !limit.is_zero())?;
        self.silence.until(limit)
    }

    /// Records that the request of this client was late or cancelled.
    pub(super) fn note_waiting_client(&mut self, client: u64) {
        if self.waiting_clients.len() < WAITING_CLIENTS_MAX
            && !self.waiting_clients.contains(&client)
        {
            self.waiting_clients.push(client);
        }
    }
}
