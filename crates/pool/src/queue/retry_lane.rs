//! The lane of requests that workers have failed and that wait for other workers. A separate lane is needed so that
//! they are not given to any free worker, and so that no request behind them has to wait.

use std::time::Instant;

use super::{EntryInfo, Lane, Queue, QueueEntry, RetryEntry, Ticket};
use crate::Queueable;

/// The number of requests that are examined, from the head of this lane. It limits the work for one event.
const LOOKED_AT: usize = 16;

impl<P: Queueable> Queue<P> {
    /// The number of requests that wait for another worker.
    pub(crate) const fn retries(&self) -> u32 {
        self.retries.length()
    }

    /// Returns the first requests of this lane.
    pub(crate) fn retry_entries(&self) -> impl DoubleEndedIterator<Item = RetryEntry> + use<P> {
        let places = self.retries.iter(&self.turns.links).take(LOOKED_AT);
        let retry_entries: Vec<_> = places.map(|place| self.retry_at(place)).collect();
        retry_entries.into_iter()
    }

    fn retry_at(&self, place: u32) -> RetryEntry {
        let waiting = self.at(place);
        let QueueEntry { info, failed, .. } = waiting.entry;
        RetryEntry { place, info, failed, until: waiting.until }
    }

    /// Adds a request that waits for another worker until this time. `first`: the request was queued before.
    pub(crate) fn push_retry(
        &mut self,
        payload: P,
        entry: QueueEntry,
        until: Instant,
        first: bool,
    ) -> Ticket {
        let ticket = if first {
            self.push_back_in(payload, entry, Lane::Retry)
        } else {
            self.push(payload, entry, Lane::Retry)
        };
        self.at_mut(ticket.place).until = until;
        ticket
    }

    /// Moves a request to another lane, before the requests there.
    pub(crate) fn move_retry(&mut self, place: u32, lane: Lane) {
        self.leave(place);
        self.enter(place, lane, true);
    }

    /// Takes a request.
    pub(crate) fn take_retry(&mut self, place: u32) -> (P, EntryInfo) {
        self.take(place)
    }
}
