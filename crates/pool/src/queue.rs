//! The queue: the one place where requests wait, in the order in which they came.
//!
//! A slab with a list through it: taking in, taking out at the head and giving up anywhere are
//! O(1). The oldest is at the head, so what waited too long is found without a search.

use std::time::Instant;

use crate::Payload;
use crate::list::{Links, List};

/// Names a request while it waits. Once it has left the queue the ticket names nothing, also when
/// another request has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    place: u32,
    generation: u32,
}

#[derive(Debug)]
struct Waiting<P> {
    payload: P,
    bytes: usize,
    since: Instant,
}

#[derive(Debug)]
struct Place<P> {
    generation: u32,
    waiting: Option<Waiting<P>>,
}

/// Requests that wait.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    places: Vec<Place<P>>,
    vacant: Vec<u32>,
    links: Links,
    order: List,
    bytes: usize,
}

impl<P: Payload> Queue<P> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            links: Links::default(),
            order: List::EMPTY,
            bytes: 0,
        }
    }

    pub(crate) const fn length(&self) -> u32 {
        self.order.length()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Since when the oldest request waits.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.order.first().map(|place| self.at(place).since)
    }

    /// Bytes of the request that is next.
    pub(crate) fn next_bytes(&self) -> Option<usize> {
        self.order.first().map(|place| self.at(place).bytes)
    }

    /// Takes in a request behind all others.
    pub(crate) fn push(&mut self, payload: P, now: Instant) -> Ticket {
        let place = self.fill(payload, now);
        self.order.push_last(&mut self.links, place);
        self.ticket(place)
    }

    /// Puts a request back before all others. It is older than they are: it counts as waiting
    /// since the oldest of them does, so that ages fall from head to tail.
    pub(crate) fn push_back_in(&mut self, payload: P, now: Instant) -> Ticket {
        let since = self.oldest().unwrap_or(now);
        let place = self.fill(payload, since);
        self.order.push_first(&mut self.links, place);
        self.ticket(place)
    }

    /// Takes out the oldest request.
    pub(crate) fn pop(&mut self) -> Option<P> {
        let place = self.order.first()?;
        Some(self.take(place))
    }

    /// Takes out the request that `ticket` names, if it still waits.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<P> {
        let place = self.places.get(ticket.place as usize)?;
        if place.generation != ticket.generation || place.waiting.is_none() {
            return None;
        }
        Some(self.take(ticket.place))
    }

    fn at(&self, place: u32) -> &Waiting<P> {
        let waiting = self.places[place as usize].waiting.as_ref();
        waiting.expect("a place in the order is taken")
    }

    fn ticket(&self, place: u32) -> Ticket {
        Ticket { place, generation: self.places[place as usize].generation }
    }

    fn fill(&mut self, payload: P, since: Instant) -> u32 {
        let bytes = payload.bytes();
        self.bytes += bytes;
        let waiting = Some(Waiting { payload, bytes, since });
        if let Some(place) = self.vacant.pop() {
            self.places[place as usize].waiting = waiting;
            return place;
        }
        let place = u32::try_from(self.places.len()).expect("limits of the queue fit into 32 bits");
        self.places.push(Place { generation: 0, waiting });
        self.links.cover(place);
        place
    }

    fn take(&mut self, place: u32) -> P {
        self.order.remove(&mut self.links, place);
        let taken = &mut self.places[place as usize];
        taken.generation = taken.generation.wrapping_add(1);
        let waiting = taken.waiting.take().expect("a place in the order is taken");
        self.vacant.push(place);
        self.bytes -= waiting.bytes;
        waiting.payload
    }

    /// Places that there is room for.
    #[cfg(test)]
    pub(crate) const fn footprint(&self) -> (usize, usize) {
        (self.places.capacity(), self.vacant.capacity())
    }

    /// Sweeps every invariant.
    pub(crate) fn check(&self) {
        let mut bytes = 0;
        let mut count = 0;
        let mut since = None;
        for place in self.order.iter(&self.links) {
            let waiting = self.at(place);
            assert!(since <= Some(waiting.since), "the head is the oldest");
            assert_eq!(waiting.bytes, waiting.payload.bytes(), "a payload's size never changes");
            since = Some(waiting.since);
            bytes += waiting.bytes;
            count += 1;
        }
        assert_eq!(count, self.order.length(), "the order is as long as it says");
        assert_eq!(bytes, self.bytes, "bytes are those of the requests that wait");
        let taken = self.places.iter().filter(|place| place.waiting.is_some()).count();
        assert_eq!(taken, count as usize, "every taken place is in the order");
        assert_eq!(self.places.len(), taken + self.vacant.len(), "every other place is vacant");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    impl Payload for u8 {
        fn bytes(&self) -> usize {
            usize::from(*self)
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn drain(queue: &mut Queue<u8>) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn first_come_first_served_and_bytes_are_counted() {
        let now = start();
        let mut queue = Queue::new();
        for payload in 1..=4 {
            queue.push(payload, now);
        }
        assert_eq!((queue.length(), queue.bytes(), queue.next_bytes()), (4, 10, Some(1)));
        queue.check();
        assert_eq!(drain(&mut queue), [1, 2, 3, 4]);
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
        queue.check();
    }

    #[test]
    fn a_ticket_names_nothing_once_its_request_is_gone_even_when_the_place_is_taken_again() {
        let now = start();
        let mut queue = Queue::new();
        let old = queue.push(1, now);
        assert_eq!(queue.pop(), Some(1));
        let new = queue.push(2, now);
        assert_eq!(queue.remove(old), None);
        assert_eq!(queue.remove(new), Some(2));
        assert_eq!(queue.remove(new), None);
        queue.check();
    }

    #[test]
    fn what_comes_back_is_first_and_as_old_as_the_oldest() {
        let now = start();
        let later = now + Duration::from_secs(1);
        let mut queue = Queue::new();
        queue.push(3, now);
        queue.push(4, later);
        queue.push_back_in(2, later);
        queue.push_back_in(1, later);
        assert_eq!(queue.oldest(), Some(now));
        queue.check();
        assert_eq!(drain(&mut queue), [1, 2, 3, 4]);
        queue.push_back_in(5, later);
        assert_eq!(queue.oldest(), Some(later));
    }

    #[test]
    fn places_are_used_again() {
        let now = start();
        let mut queue = Queue::new();
        for _ in 0..100 {
            queue.push(1, now);
            queue.push(2, now);
            queue.pop();
            queue.pop();
        }
        assert_eq!(queue.places.len(), 2);
    }
}
