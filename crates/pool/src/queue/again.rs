//! Requests that workers have failed and that wait for others: a lane of its own, so that they
//! need not be given to whoever is free and nobody behind them waits for their sake.

use std::time::Instant;

use super::{Again, Entry, Facts, Lane, Queue, Ticket};
use crate::Payload;

/// Requests of this lane that are looked at, from its head: what follows from an event has an end.
const LOOKED_AT: usize = 16;

impl<P: Payload> Queue<P> {
    /// How many wait for another worker.
    pub(crate) const fn again(&self) -> u32 {
        self.again.length()
    }

    /// The first of them.
    pub(crate) fn agains(&self) -> impl DoubleEndedIterator<Item = Again> + use<P> {
        let places = self.again.iter(&self.turns.links).take(LOOKED_AT);
        let agains: Vec<_> = places.map(|place| self.again_at(place)).collect();
        agains.into_iter()
    }

    fn again_at(&self, place: u32) -> Again {
        let waiting = self.at(place);
        let Entry { facts, failed, .. } = waiting.entry;
        Again { place, facts, failed, until: waiting.until }
    }

    /// Takes in a request that waits for another worker until then; `first`: it was here before.
    pub(crate) fn push_again(
        &mut self,
        payload: P,
        entry: Entry,
        until: Instant,
        first: bool,
    ) -> Ticket {
        let ticket = if first {
            self.push_back_in(payload, entry, Lane::Again)
        } else {
            self.push(payload, entry, Lane::Again)
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
    pub(crate) fn take_again(&mut self, place: u32) -> (P, Facts) {
        self.take(place)
    }
}
