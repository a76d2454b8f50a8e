//! Requests that workers have failed and that wait for others: a lane of its own, so that they
//! need not be given to whoever is free and nobody behind them waits for their sake.

use std::time::Instant;

use super::{EntryInfo, Lane, Queue, QueueEntry, RetryEntry, Ticket};
use crate::Queueable;

/// Requests of this lane that are looked at, from its head: what follows from an event has an end.
const LOOKED_AT: usize = 16;

impl<P: Queueable> Queue<P> {
    /// How many wait for another worker.
    pub(crate) const fn again(&self) -> u32 {
        self.again.length()
    }

    /// The first of them.
    pub(crate) fn agains(&self) -> impl DoubleEndedIterator<Item = RetryEntry> + use<P> {
        let places = self.again.iter(&self.turns.links).take(LOOKED_AT);
        let agains: Vec<_> = places.map(|place| self.again_at(place)).collect();
        agains.into_iter()
    }

    fn again_at(&self, place: u32) -> RetryEntry {
        let waiting = self.at(place);
        let QueueEntry { info, failed, .. } = waiting.entry;
        RetryEntry { place, info, failed, until: waiting.until }
    }

    /// Takes in a request that waits for another worker until then; `first`: it was here before.
    pub(crate) fn push_again(
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

    /// One of them waits in another lane from now on, before those that are there.
    pub(crate) fn move_again(&mut self, place: u32, lane: Lane) {
        self.leave(place);
        self.enter(place, lane, true);
    }

    /// Takes out one of them.
    pub(crate) fn take_again(&mut self, place: u32) -> (P, EntryInfo) {
        self.take(place)
    }
}
