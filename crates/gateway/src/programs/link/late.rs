//! Requests that are not answered in time.
//!
//! A program that answers in order is late with all that it has, so it is killed. One that several
//! clients share goes on: what is late is taken back, and its client is told the deadline. It is
//! killed when it answers nobody: it has said nothing for as long as a request may take, and either
//! nobody else has a request with it, or another client's was late in the same silence.

use std::time::Duration;

use event::Calls;
use exchange::WorkerId;

use super::super::fault::{Epitaph, Fault};
use super::Link;
use super::flights::Flight;
use crate::upward::Upward;

impl Link {
    /// The oldest request was not answered, or nothing was said, within `limit`. Gives what the program
    /// is killed for; none: it goes on.
    pub(in crate::programs) fn handle_late(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        (limit, fault): (Duration, Fault),
        name: &str,
        up: &mut Vec<Upward>,
    ) -> Option<Fault> {
        if self.tags.is_none() {
            return Some(fault);
        }
        let now = calls.now();
        let is_late = |flight: &Flight| flight.dispatched + limit <= now;
        let is_silent = self.silent_until(limit).is_some_and(|until| until <= now);
        let oldest = self.flights.oldest().filter(|oldest| is_late(oldest));
        let Some(client) = oldest.map(|flight| flight.form.asker.client) else {
            return is_silent.then_some(Fault::Silent(limit));
        };
        let other_was_late = self.late_client.is_some_and(|it| it != client);
        if is_silent && (other_was_late || self.flights.are_of(client)) {
            return Some(fault);
        }
        self.late_client = Some(client);
        while let Some(id) = self.flights.oldest().filter(|it| is_late(it)).map(|it| it.id) {
            tracing::warn!(worker = name, "{}: the request is taken back", fault.text());
            let outcome = fault.outcome(name, &Epitaph::default());
            up.push(Upward::Answered { id, outcome });
            self.take_back(calls, worker, id, up);
        }
        None
    }
}
