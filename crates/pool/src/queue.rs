//! The queue: the only place where requests wait.
//!
//! Every request is in two lists: one in the order of arrival, where the requests that waited too long are at the head,
//! and one in its *lane*. The common lane is for any free worker. Each worker has its own lane for clients that are
//! bound to it. Requests that workers have failed wait for other workers in a lane of their own. In a lane the most
//! urgent request goes first, but a request gains one level for every `step` that it has waited, so no request starves.
//! Within a level, the groups that share (a client, a key) take turns. Adding, taking and abandoning a request are
//! O(1). The choice between several lanes follows the same rules ([`lanes`]).

mod flows;
mod lanes;
mod retry_lane;

use std::time::{Duration, Instant};

use crate::affinity::Key;
use crate::failed::Failed;
use crate::list::{Links, List};
use crate::request_traits::PRIORITIES;
use crate::{Queueable, RequestTraits};

use flows::{Flows, Turns};

/// Identifies a request while it waits. When the request has left the queue, the ticket identifies nothing, even if
/// another request has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    place: u32,
    generation: u32,
}

impl Ticket {
    /// The ticket of a request that went to its worker without waiting. No queue has that many places.
    pub(crate) const SPENT: Self = Self { place: u32::MAX, generation: 0 };
}

/// The lane of a request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// For any worker.
    Common,
    /// For the worker at this place.
    Bound(u32),
    /// For any worker that has not failed the request.
    Retry,
}

/// The properties of a waiting request that the schedule needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryInfo {
    pub(crate) id: u64,
    pub(crate) key: Option<Key>,
    /// The position on the hash ring.
    pub(crate) hash: Option<u64>,
    /// The worker that a cookie names.
    pub(crate) named: Option<u64>,
    /// The client of the request.
    pub(crate) client: Option<u64>,
    pub(crate) since: Instant,
}

/// The data that a pool stores for a request besides its payload.
#[derive(Clone, Copy, Debug)]
pub struct QueueEntry {
    /// Bytes of memory that the request holds.
    pub(crate) bytes: usize,
    pub(crate) info: EntryInfo,
    /// The workers that have failed the request.
    pub(crate) failed: Failed,
    priority: u8,
    share: Option<u64>,
}

impl QueueEntry {
    /// An entry for a request that arrives at `now` with these traits and holds this number of
    /// [`bytes`](Queueable::bytes).
    #[must_use]
    pub fn new(now: Instant, ask: &RequestTraits<'_>, bytes: usize) -> Self {
        let &RequestTraits { id, key, hash, named, priority, share, client } = ask;
        let info = EntryInfo { id, key: key.map(Key::new), hash, named, client, since: now };
        let (failed, priority) = (Failed::default(), priority.min(PRIORITIES - 1));
        Self { bytes, info, failed, priority, share }
    }

    /// Returns the same entry for a request that these workers have failed.
    #[must_use]
    pub fn failed_by(self, failed: Failed) -> Self {
        Self { failed, ..self }
    }

    pub(crate) fn of(payload: &impl Queueable, now: Instant) -> Self {
        Self::new(now, &payload.traits(), payload.bytes())
    }
}

/// A place in the table. Requests are written directly into it, because every request passes through it while no slot
/// is free.
#[derive(Debug)]
struct Place<P> {
    generation: u32,
    /// The flow of the request in its lane, if the lane has flows.
    flow: u32,
    lane: Lane,
    /// Until when the request waits for a worker that has not failed it. It matters in that lane only.
    until: Instant,
    entry: QueueEntry,
    /// `None`: the place is vacant, and the other fields belong to the previous request.
    payload: Option<P>,
}

/// A request in the lane for retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryEntry {
    /// Its place in the table.
    pub(crate) place: u32,
    pub(crate) info: EntryInfo,
    pub(crate) failed: Failed,
    /// Until when it waits for another worker.
    pub(crate) until: Instant,
}

/// The requests that wait.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    places: Vec<Place<P>>,
    vacant: Vec<u32>,
    /// The list in the order of arrival.
    links: Links,
    order: List,
    bytes: usize,
    /// The lists of the lanes.
    turns: Turns,
    /// The waiting time that one level of priority is worth.
    step: Duration,
    common: Flows,
    common_bytes: usize,
    bound: Vec<Flows>,
    retries: List,
}

impl<P: Queueable> Queue<P> {
    pub(crate) fn new(step: Duration) -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            links: Links::default(),
            order: List::EMPTY,
            bytes: 0,
            turns: Turns::default(),
            step,
            common: Flows::default(),
            common_bytes: 0,
            bound: Vec::new(),
            retries: List::EMPTY,
        }
    }

    pub(crate) const fn handle_step(&mut self, step: Duration) {
        self.step = step;
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

    /// The number of requests that wait for any worker, and their bytes.
    pub(crate) const fn common(&self) -> (u32, usize) {
        (self.common.length(), self.common_bytes)
    }

    /// The number of requests that wait for the worker at `place`.
    pub(crate) fn bound(&self, place: u32) -> u32 {
        self.bound.get(place as usize).map_or(0, Flows::length)
    }

    /// Since when the oldest request waits.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.order.first().map(|place| self.at(place).entry.info.since)
    }

    /// Whether any waiting request satisfies a condition. It examines all of them.
    pub(crate) fn any(&self, is: impl Fn(&EntryInfo) -> bool) -> bool {
        self.order.iter(&self.links).any(|place| is(&self.at(place).entry.info))
    }

    /// The workers that have failed the next request of a lane.
    pub(crate) fn next_failed(&self, lane: Lane) -> Failed {
        self.first(lane).map_or_else(Failed::default, |place| self.at(place).entry.failed)
    }

    /// The next request of a lane, and its bytes.
    pub(crate) fn next(&self, lane: Lane) -> Option<(EntryInfo, usize)> {
        let waiting = self.at(self.first(lane)?);
        Some((waiting.entry.info, waiting.entry.bytes))
    }

    /// The place of the next request of a lane, and its bytes.
    pub(crate) fn head(&self, lane: Lane) -> Option<(u32, usize)> {
        let place = self.first(lane)?;
        Some((place, self.at(place).entry.bytes))
    }

    /// Like [`head`](Self::head), if the request may join others in a batch for any worker. A request with a key may
    /// belong to another worker.
    #[inline]
    pub(crate) fn head_that_joins(&self, lane: Lane) -> Option<(u32, usize)> {
        let place = self.first(lane)?;
        let QueueEntry { bytes, info, .. } = &self.at(place).entry;
        let free = info.key.is_none() && info.named.is_none() && info.hash.is_none();
        (lane != Lane::Common || free).then_some((place, *bytes))
    }

    #[inline]
    fn first(&self, lane: Lane) -> Option<u32> {
        let since = |place| self.at(place).entry.info.since;
        match lane {
            Lane::Common => self.common.first(self.step, since),
            Lane::Bound(worker) => self.bound.get(worker as usize)?.first(self.step, since),
            Lane::Retry => self.retries.first(),
        }
    }

    /// Adds a request behind all others of its lane.
    pub(crate) fn push(&mut self, payload: P, entry: QueueEntry, lane: Lane) -> Ticket {
        let place = self.fill(payload, entry);
        self.order.push_last(&mut self.links, place);
        self.enter(place, lane, false);
        self.ticket(place)
    }

    /// Puts a request back before all others. It counts as waiting since the oldest of them, so that ages decrease from
    /// head to tail.
    pub(crate) fn push_back_in(&mut self, payload: P, mut entry: QueueEntry, lane: Lane) -> Ticket {
        entry.info.since = self.oldest().unwrap_or(entry.info.since);
        let place = self.fill(payload, entry);
        self.order.push_first(&mut self.links, place);
        self.enter(place, lane, true);
        self.ticket(place)
    }

    /// Takes the next request of a lane.
    pub(crate) fn pop(&mut self, lane: Lane) -> Option<(P, EntryInfo)> {
        let place = self.first(lane)?;
        Some(self.take(place))
    }

    /// Takes the oldest request of all.
    pub(crate) fn pop_oldest(&mut self) -> Option<(P, EntryInfo)> {
        let place = self.order.first()?;
        Some(self.take(place))
    }

    /// Takes the request that `ticket` identifies, if it still waits.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<P> {
        let place = self.places.get(ticket.place as usize)?;
        if place.generation != ticket.generation || place.payload.is_none() {
            return None;
        }
        Some(self.take(ticket.place).0)
    }

    /// Returns a place in the order, which is occupied.
    fn at(&self, place: u32) -> &Place<P> {
        &self.places[place as usize]
    }

    fn at_mut(&mut self, place: u32) -> &mut Place<P> {
        &mut self.places[place as usize]
    }

    fn ticket(&self, place: u32) -> Ticket {
        Ticket { place, generation: self.places[place as usize].generation }
    }

    fn fill(&mut self, payload: P, entry: QueueEntry) -> u32 {
        self.bytes += entry.bytes;
        if let Some(place) = self.vacant.pop() {
            let taken = self.at_mut(place);
            taken.entry = entry;
            taken.payload = Some(payload);
            return place;
        }
        let place = u32::try_from(self.places.len()).expect("limits of the queue fit into 32 bits");
        let (lane, until, payload) = (Lane::Common, entry.info.since, Some(payload));
        self.places.push(Place { generation: 0, flow: 0, lane, until, entry, payload });
        self.links.cover(place);
        self.turns.links.cover(place);
        place
    }

    fn enter(&mut self, place: u32, lane: Lane, first: bool) {
        let (priority, share, bytes) = {
            let waiting = self.at_mut(place);
            waiting.lane = lane;
            let QueueEntry { priority, share, bytes, .. } = waiting.entry;
            (priority, share, bytes)
        };
        let flow = match lane {
            Lane::Common => {
                self.common_bytes += bytes;
                self.common.enter(&mut self.turns, place, priority, share, first)
            }
            Lane::Bound(worker) => {
                if self.bound.len() <= worker as usize {
                    self.bound.resize_with(worker as usize + 1, Flows::default);
                }
                let flows = &mut self.bound[worker as usize];
                flows.enter(&mut self.turns, place, priority, share, first)
            }
            Lane::Retry => return self.retries.push(&mut self.turns.links, place, first),
        };
        self.at_mut(place).flow = flow;
    }

    fn leave(&mut self, place: u32) {
        let &Place { lane, flow, entry: QueueEntry { bytes, .. }, .. } = self.at(place);
        match lane {
            Lane::Common => {
                self.common_bytes -= bytes;
                self.common.leave(&mut self.turns, place, flow);
            }
            Lane::Bound(worker) => self.bound[worker as usize].leave(&mut self.turns, place, flow),
            Lane::Retry => self.retries.remove(&mut self.turns.links, place),
        }
    }

    /// Takes the request at a place in the order.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> (P, EntryInfo) {
        self.leave(place);
        self.order.remove(&mut self.links, place);
        let taken = &mut self.places[place as usize];
        taken.generation = taken.generation.wrapping_add(1);
        let payload = taken.payload.take().expect("a place in the order is taken");
        self.vacant.push(place);
        self.bytes -= taken.entry.bytes;
        (payload, taken.entry.info)
    }

    /// The number of places that memory is allocated for.
    #[cfg(test)]
    pub(crate) const fn footprint(&self) -> (usize, usize) {
        (self.places.capacity(), self.vacant.capacity())
    }

    /// Checks every invariant.
    pub(crate) fn check(&self) {
        let (mut bytes, mut count, mut since) = (0, 0, None);
        let (mut common, mut common_bytes) = (0, 0);
        for place in self.order.iter(&self.links) {
            let waiting = self.at(place);
            let QueueEntry { bytes: held, info, .. } = &waiting.entry;
            assert!(since <= Some(info.since), "the head is the oldest");
            let payload = waiting.payload.as_ref().expect("a place in the order is taken");
            assert_eq!(*held, payload.bytes(), "a payload's size never changes");
            since = Some(info.since);
            bytes += held;
            count += 1;
            if waiting.lane == Lane::Common {
                common += 1;
                common_bytes += held;
            }
        }
        assert_eq!(count, self.order.length(), "the order is as long as it says");
        assert_eq!(bytes, self.bytes, "bytes are those of the requests that wait");
        let taken = self.places.iter().filter(|place| place.payload.is_some()).count();
        assert_eq!(taken, count as usize, "every taken place is in the order");
        assert_eq!(self.places.len(), taken + self.vacant.len(), "every other place is vacant");
        assert_eq!((common, common_bytes), self.common(), "the common lane is counted");
        self.common.check(&self.turns);
        let mut bound = self.retries.length();
        let is_again = |place| self.at(place).lane == Lane::Retry;
        assert!(self.retries.iter(&self.turns.links).all(is_again), "it knows its lane");
        for (worker, flows) in (0..).zip(&self.bound) {
            flows.check(&self.turns);
            for place in flows.all(&self.turns) {
                assert_eq!(self.at(place).lane, Lane::Bound(worker), "it knows its lane");
                bound += 1;
            }
        }
        assert_eq!(common + bound, count, "everybody is in a lane");
    }
}

#[cfg(test)]
mod tests;
