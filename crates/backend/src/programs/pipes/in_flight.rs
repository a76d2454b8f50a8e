//! Requests in flight of a program, in the order in which they were sent.
//!
//! ```text
//!   queue      [ 7 ][ – ][ 9 ][ 10 ][ – ][ 12 ]    by number; a request that was answered out of order leaves a hole
//!   cancelled        8                              unwanted, but the reply may still arrive
//! ```
//!
//! The first place of the queue is never a hole, so the oldest request is found immediately. There are never more holes
//! than requests (plus [`HOLES_MIN`]), so a lookup takes the logarithm of the number in flight, and memory is
//! proportional to that number.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use exchange::{RequestId, Slice};

use super::original::Original;
use flow::backend_event::BackendEvent;
use flow::request_meta::RequestMeta;

/// The number of holes from which on the queue may be compacted.
const HOLES_MIN: usize = 16;

#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) id: RequestId,
    /// The bytes that were written.
    pub(super) body: Slice,
    /// The request before it was written, to be returned if it is never sent.
    pub(super) original: Original,
    /// The range of its id in `body`, if replies are found by id; otherwise empty.
    pub(super) named: Range<usize>,
    pub(super) meta: RequestMeta,
    /// Bytes offered before this request, and after all of it.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) dispatched: Instant,
    /// Whether it was logged as slow.
    pub(super) slow: bool,
    /// Whether its reply is unwanted. The request keeps its slot until the program reads on.
    pub(super) unwanted: bool,
}

impl ActiveRequest {
    /// Whether it may be sent to a program again; `tries` is the maximum number in total.
    pub(super) const fn may_be_tried(&self, tries: u8) -> bool {
        self.meta.tries.saturating_add(1) < tries
    }

    /// Sends it to another program, although this program had received it.
    pub(super) fn retry(self) -> BackendEvent {
        let meta = RequestMeta { tries: self.meta.tries.saturating_add(1), ..self.meta };
        Self { meta, ..self }.unsent()
    }

    /// Sends it to another program, because it never reached this one.
    pub(super) fn unsent(self) -> BackendEvent {
        let payload = self.original.give_back(self.body);
        BackendEvent::Retry { id: self.id, payload, meta: self.meta, failed: None }
    }
}

#[derive(Debug)]
struct Place {
    number: u64,
    start: u64,
    flight: Option<ActiveRequest>,
}

#[derive(Debug, Default)]
pub(super) struct InFlight {
    queue: VecDeque<Place>,
    holes: usize,
    next: u64,
    /// The number of each request, including cancelled ones; only if replies arrive in any order.
    numbers: Option<BTreeMap<RequestId, u64>>,
    cancelled: BTreeMap<u64, Cancelled>,
    /// Numbers of cancelled requests that the program may still work on.
    ahead: Vec<u64>,
    /// How long it may continue to work on a cancelled request.
    cancelled_latency: CancelledLatency,
}

#[derive(Debug)]
struct Cancelled {
    flight: ActiveRequest,
    /// Bytes offered before the cancellation is sent to the program.
    cancel_offset: u64,
    /// When it was cancelled.
    since: Instant,
}

/// The longest time after which the program has answered a cancelled request. It halves each minute, so that one slow
/// request does not keep slots in use forever.
#[derive(Debug, Default)]
struct CancelledLatency {
    longest: Duration,
    since: Option<Instant>,
}

const HALF_LIFE: Duration = Duration::from_secs(60);

impl CancelledLatency {
    fn at(&self, now: Instant) -> Duration {
        let age = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let halvings = u32::try_from(age.as_secs() / HALF_LIFE.as_secs()).unwrap_or(u32::MAX);
        let divisor = 1_u32.checked_shl(halvings).unwrap_or(0);
        self.longest.checked_div(divisor).unwrap_or(Duration::ZERO)
    }

    fn note(&mut self, took: Duration, now: Instant) {
        if took >= self.at(now) {
            *self = Self { longest: took, since: Some(now) };
        }
    }
}

/// Which kind of request a reply belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completed {
    Wanted,
    Cancelled,
}

impl InFlight {
    /// Creates an empty queue. With `any_order`, requests can be found by their ids.
    pub(super) fn new(any_order: bool) -> Self {
        Self { numbers: any_order.then(BTreeMap::new), ..Self::default() }
    }

    pub(super) fn push(&mut self, flight: ActiveRequest) {
        let number = self.next;
        self.next += 1;
        if let Some(numbers) = &mut self.numbers {
            numbers.insert(flight.id, number);
        }
        self.queue.push_back(Place { number, start: flight.start, flight: Some(flight) });
    }

    /// Returns the number of requests whose replies are wanted.
    pub(super) fn len(&self) -> usize {
        self.queue.len() - self.holes
    }

    /// Returns the oldest wanted request.
    pub(super) fn oldest(&self) -> Option<&ActiveRequest> {
        self.queue.front()?.flight.as_ref()
    }

    pub(super) fn oldest_mut(&mut self) -> Option<&mut ActiveRequest> {
        self.queue.front_mut()?.flight.as_mut()
    }

    /// Whether this request is in flight and its reply is wanted.
    pub(super) fn is_wanted(&self, id: RequestId) -> bool {
        self.queue.iter().filter_map(|place| place.flight.as_ref()).any(|flight| flight.id == id)
    }

    /// Whether all wanted requests are from this client.
    pub(super) fn are_of(&self, client: u64) -> bool {
        self.are_all(|flight| flight.meta.asker.client == client)
    }

    /// Whether this holds for all wanted requests.
    pub(super) fn are_all(&self, is: impl Fn(&ActiveRequest) -> bool) -> bool {
        self.queue.iter().filter_map(|place| place.flight.as_ref()).all(is)
    }

    /// Removes and returns the oldest request, if it and the next one were sent completely: the kernel has accepted
    /// `accepted` bytes.
    pub(super) fn pop_followed(&mut self, accepted: u64) -> Option<ActiveRequest> {
        let mut first_two = self.queue.iter().map_while(|place| place.flight.as_ref()).take(2);
        let (_, second) = (first_two.next()?, first_two.next()?);
        if second.end <= accepted { self.pop() } else { None }
    }

    /// Removes and returns the oldest wanted request.
    pub(super) fn pop(&mut self) -> Option<ActiveRequest> {
        let flight = self.queue.pop_front()?.flight?;
        self.forget(flight.id);
        self.close_holes();
        Some(flight)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ActiveRequest> {
        self.queue.iter_mut().filter_map(|place| place.flight.as_mut())
    }

    /// Returns the oldest wanted request with this id.
    pub(super) fn named(&self, id: &[u8]) -> Option<&ActiveRequest> {
        let mut in_flight = self.queue.iter().filter_map(|place| place.flight.as_ref());
        let is = |flight: &&ActiveRequest| flight.body.get(flight.named.clone()) == Some(id);
        in_flight.find(is).filter(|_| !id.is_empty())
    }

    /// Ends the request with this id, which is answered, if it was sent completely: the kernel has accepted `accepted`
    /// bytes.
    pub(super) fn complete(
        &mut self,
        id: RequestId,
        accepted: u64,
        now: Instant,
    ) -> Option<Completed> {
        let number = *self.numbers.as_ref()?.get(&id)?;
        if let Some(Cancelled { flight, since, .. }) = self.cancelled.get(&number) {
            if flight.end > accepted {
                return None;
            }
            let (start, went_on) = (flight.start, now.saturating_duration_since(*since));
            self.cancelled_latency.note(went_on, now);
            self.cancelled.remove(&number);
            self.ahead.retain(|ahead| *ahead != number);
            self.prune_ahead(start, now);
            self.forget(id);
            return Some(Completed::Cancelled);
        }
        let place = self.find(number)?;
        let start = place.flight.as_ref().filter(|flight| flight.end <= accepted)?.start;
        place.flight = None;
        self.prune_ahead(start, now);
        self.forget(id);
        self.leave_hole();
        Some(Completed::Wanted)
    }

    /// Handles the answer to a request before which `answered_at` bytes were offered. The program has therefore read
    /// the cancellations in these bytes. It no longer works on those that were cancelled longer ago than the longest
    /// time it continues with a cancelled request.
    fn prune_ahead(&mut self, answered_at: u64, now: Instant) {
        let Self { ahead, cancelled, cancelled_latency, .. } = self;
        let goes_on_for = cancelled_latency.at(now);
        ahead.retain(|number| {
            cancelled
                .get(number)
                .is_some_and(|it| it.cancel_offset > answered_at || it.since + goes_on_for > now)
        });
    }

    /// Marks the reply as unwanted; the program receives the cancellation after `cancel_offset` offered bytes. Returns the
    /// client and the range in the offered bytes; `None` if the request is not in flight or was already cancelled.
    pub(super) fn cancel(
        &mut self,
        id: RequestId,
        cancel_offset: u64,
        now: Instant,
    ) -> Option<(u64, Range<u64>)> {
        let number = self.numbers.as_ref().and_then(|numbers| numbers.get(&id)).copied();
        let number = number?;
        let mut flight = self.find(number)?.flight.take()?;
        let (client, place) = (flight.meta.asker.client, flight.start..flight.end);
        (flight.body, flight.original) = (Slice::default(), Original::default());
        self.cancelled.insert(number, Cancelled { flight, cancel_offset, since: now });
        self.ahead.push(number);
        self.leave_hole();
        Some((client, place))
    }

    /// Returns the number of cancelled requests that the program may still work on. It has answered neither these
    /// requests nor, long enough after their cancellation, a request that was sent after the cancellation.
    pub(super) const fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Marks the reply as unwanted. The request is cancelled later.
    pub(super) fn note_unwanted(&mut self, id: RequestId) {
        let number = self.numbers.as_ref().and_then(|numbers| numbers.get(&id)).copied();
        let place = number.and_then(|number| self.find(number));
        if let Some(flight) = place.and_then(|place| place.flight.as_mut()) {
            flight.unwanted = true;
        }
    }

    /// Returns the requests that must be cancelled.
    pub(super) fn unwanted(&self) -> Vec<RequestId> {
        let in_flight = self.queue.iter().filter_map(|place| place.flight.as_ref());
        in_flight.filter(|flight| flight.unwanted).map(|flight| flight.id).collect()
    }

    /// Removes the oldest cancelled request if there are more than `most`.
    pub(super) fn lapse(&mut self, most: usize) -> Option<RequestId> {
        if self.cancelled.len() <= most {
            return None;
        }
        let (number, Cancelled { flight, .. }) = self.cancelled.pop_first()?;
        self.ahead.retain(|ahead| *ahead != number);
        self.forget(flight.id);
        Some(flight.id)
    }

    /// Removes and returns the youngest request, unless a part of it was sent. Cancelled requests that were not sent
    /// either are removed.
    pub(super) fn pop_unsent(&mut self, accepted: u64) -> Option<ActiveRequest> {
        let is_unsent = |it: &Cancelled| it.flight.start >= accepted;
        while let Some(last) = self.cancelled.last_entry().filter(|it| is_unsent(it.get())) {
            let (number, Cancelled { flight, .. }) = last.remove_entry();
            self.ahead.retain(|ahead| *ahead != number);
            self.forget(flight.id);
        }
        while self.queue.back().is_some_and(|place| place.start >= accepted) {
            match self.queue.pop_back()?.flight {
                Some(flight) => {
                    self.forget(flight.id);
                    return Some(flight);
                }
                None => self.holes -= 1,
            }
        }
        None
    }

    /// Removes all cancelled requests.
    pub(super) fn forget_cancelled(&mut self) {
        while self.lapse(0).is_some() {}
    }

    fn forget(&mut self, id: RequestId) {
        if let Some(numbers) = &mut self.numbers {
            numbers.remove(&id);
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Place> {
        let at = self.queue.binary_search_by_key(&number, |place| place.number).ok()?;
        self.queue.get_mut(at)
    }

    fn leave_hole(&mut self) {
        self.holes += 1;
        self.close_holes();
        if self.holes > HOLES_MIN && self.holes > self.queue.len() / 2 {
            self.queue.retain(|place| place.flight.is_some());
            self.holes = 0;
        }
    }

    fn close_holes(&mut self) {
        while self.queue.front().is_some_and(|place| place.flight.is_none()) {
            self.queue.pop_front();
            self.holes -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_program_goes_on_is_forgotten_in_time() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut cancelled_latency = CancelledLatency::default();
        assert_eq!(cancelled_latency.at(now), Duration::ZERO);
        cancelled_latency.note(64 * second, now);
        cancelled_latency.note(second, now);
        assert_eq!(
            cancelled_latency.at(now + HALF_LIFE - second),
            64 * second,
            "less does not change it"
        );
        assert_eq!(cancelled_latency.at(now + HALF_LIFE), 32 * second);
        assert_eq!(cancelled_latency.at(now + 3 * HALF_LIFE), 8 * second);
        cancelled_latency.note(9 * second, now + 3 * HALF_LIFE);
        assert_eq!(cancelled_latency.at(now + 3 * HALF_LIFE), 9 * second);
        assert_eq!(cancelled_latency.at(now + 1000 * HALF_LIFE), Duration::ZERO);
    }

    fn id(number: u32) -> RequestId {
        RequestId::new(number.into())
    }

    fn flight(number: u32) -> ActiveRequest {
        let (start, end) = (u64::from(number) * 10, u64::from(number) * 10 + 10);
        let dispatched = Instant::now();
        let (body, meta) = (Slice::default(), RequestMeta::default());
        ActiveRequest {
            id: id(number),
            body,
            original: Original::default(),
            named: 0..0,
            meta,
            start,
            end,
            dispatched,
            slow: false,
            unwanted: false,
        }
    }

    fn named(in_flight: &InFlight, id: &[u8]) -> Option<RequestId> {
        in_flight.named(id).map(|flight| flight.id)
    }

    fn of(count: u32) -> InFlight {
        let mut in_flight = InFlight::new(true);
        (0..count).for_each(|number| in_flight.push(flight(number)));
        in_flight
    }

    #[test]
    fn the_oldest_is_at_hand_whatever_lands_before_it() {
        let mut in_flight = of(5);
        for (lands, oldest) in [(1, Some(0)), (0, Some(2)), (3, Some(2)), (2, Some(4)), (4, None)] {
            assert_eq!(
                in_flight.complete(id(lands), 1000, Instant::now()),
                Some(Completed::Wanted)
            );
            assert_eq!(in_flight.oldest().map(|it| it.id), oldest.map(id));
        }
        assert!(in_flight.complete(id(4), 1000, Instant::now()).is_none(), "once");
        assert_eq!((in_flight.len(), in_flight.queue.len()), (0, 0));
    }

    #[test]
    fn what_has_not_left_us_cannot_land() {
        let mut in_flight = of(3);
        assert!(in_flight.complete(id(2), 25, Instant::now()).is_none());
        assert!(in_flight.complete(id(1), 20, Instant::now()).is_some());
        assert!(in_flight.cancel(id(2), 1000, Instant::now()).is_some());
        assert!(in_flight.complete(id(2), 25, Instant::now()).is_none());
        assert_eq!(in_flight.complete(id(2), 30, Instant::now()), Some(Completed::Cancelled));
    }

    #[test]
    fn a_reply_is_the_oldests_that_bears_its_id() {
        let mut in_flight = InFlight::new(true);
        for (number, body) in ["{7}", "{77}", "{7}", "{}"].into_iter().enumerate() {
            let named = 1..body.len() - 1;
            let body = Slice::from(body);
            in_flight.push(ActiveRequest { body, named, ..flight(u32::try_from(number).unwrap()) });
        }
        assert_eq!(named(&in_flight, b"77"), Some(id(1)));
        assert_eq!(named(&in_flight, b"7"), Some(id(0)));
        in_flight.complete(id(0), 1000, Instant::now()).unwrap();
        assert_eq!(named(&in_flight, b"7"), Some(id(2)));
        assert_eq!((named(&in_flight, b"8"), named(&in_flight, b"")), (None, None));
    }

    #[test]
    fn one_that_never_lands_does_not_keep_the_places_of_the_others() {
        let mut in_flight = of(1);
        for number in 1..100_000 {
            in_flight.push(flight(number));
            in_flight.complete(id(number), u64::MAX, Instant::now()).unwrap();
            assert!(in_flight.queue.len() <= 2 * HOLES_MIN + 2, "{}", in_flight.queue.len());
        }
        assert_eq!((in_flight.len(), in_flight.oldest().map(|it| it.id)), (1, Some(id(0))));
    }

    #[test]
    fn what_was_cancelled_is_forgotten_from_the_oldest_on() {
        let mut in_flight = of(4);
        for number in [2, 0, 1] {
            assert!(in_flight.cancel(id(number), 1000, Instant::now()).is_some());
            assert_eq!(in_flight.cancel(id(number), 1000, Instant::now()), None, "twice");
        }
        assert_eq!((in_flight.len(), in_flight.oldest().map(|it| it.id)), (1, Some(id(3))));
        assert_eq!(in_flight.lapse(2), Some(id(0)));
        assert_eq!(in_flight.lapse(2), None);
        assert!(in_flight.complete(id(0), 1000, Instant::now()).is_none());
    }

    #[test]
    fn what_nobody_wants_keeps_its_place_until_it_is_cancelled() {
        let mut in_flight = of(4);
        for number in [2, 1, 9] {
            in_flight.note_unwanted(id(number));
        }
        assert_eq!((in_flight.len(), in_flight.unwanted()), (4, vec![id(1), id(2)]));
        assert_eq!(in_flight.complete(id(1), 1000, Instant::now()), Some(Completed::Wanted));
        assert_eq!(in_flight.cancel(id(2), 1000, Instant::now()), Some((0, 20..30)));
        assert!(in_flight.unwanted().is_empty());
    }

    /// Creates `count` requests. The first three are cancelled, at intervals of one second.
    fn of_cancelled(count: u32) -> (InFlight, impl Fn(u64) -> Instant) {
        let (mut in_flight, start) = (of(count), Instant::now());
        let at = move |second| start + Duration::from_secs(second);
        for number in 0..3 {
            assert!(in_flight.cancel(id(number), 60, at(number.into())).is_some());
        }
        (in_flight, at)
    }

    #[test]
    fn what_was_cancelled_is_worked_off_when_a_later_request_is_answered_or_itself() {
        let (mut in_flight, at) = of_cancelled(6);
        assert_eq!(in_flight.ahead(), 3);
        // Sent before the cancellations: it may be answered before the program has read them.
        assert_eq!(in_flight.complete(id(4), 1000, at(3)), Some(Completed::Wanted));
        assert_eq!(in_flight.ahead(), 3);
        assert_eq!(in_flight.complete(id(1), 1000, at(3)), Some(Completed::Cancelled));
        assert_eq!(in_flight.ahead(), 2);
        in_flight.push(flight(6));
        assert_eq!(in_flight.complete(id(6), 1000, at(5)), Some(Completed::Wanted));
        assert_eq!(in_flight.ahead(), 0);
    }

    #[test]
    fn one_that_goes_on_with_what_was_cancelled_has_not_worked_it_off_by_an_answer_to_another() {
        let (mut in_flight, at) = of_cancelled(6);
        in_flight.push(flight(6));
        assert_eq!(in_flight.complete(id(6), 1000, at(3)), Some(Completed::Wanted));
        assert_eq!(in_flight.ahead(), 0, "nothing shows yet that it goes on");
        assert_eq!(in_flight.complete(id(0), 1000, at(10)), Some(Completed::Cancelled));
        for number in [4, 5] {
            assert!(in_flight.cancel(id(number), 70, at(6 + u64::from(number))).is_some());
        }
        in_flight.push(flight(7));
        // It worked on one of them for another 10 s.
        assert_eq!(in_flight.complete(id(7), 1000, at(20)), Some(Completed::Wanted));
        assert_eq!(in_flight.ahead(), 1);
        assert_eq!(in_flight.complete(id(5), 1000, at(20)), Some(Completed::Cancelled));
        assert_eq!(in_flight.ahead(), 0);
    }

    #[test]
    fn what_is_forgotten_is_not_ahead() {
        let (mut in_flight, _) = of_cancelled(3);
        assert_eq!(in_flight.lapse(2), Some(id(0)));
        assert_eq!(in_flight.ahead(), 2);
        assert!(in_flight.pop_unsent(15).is_none());
        assert_eq!(in_flight.ahead(), 1);
        in_flight.forget_cancelled();
        assert_eq!(in_flight.ahead(), 0);
    }

    #[test]
    fn what_never_left_comes_back_from_the_youngest_on() {
        let mut in_flight = of(5);
        assert!(in_flight.cancel(id(4), 1000, Instant::now()).is_some());
        assert!(in_flight.cancel(id(3), 1000, Instant::now()).is_some());
        let mut back = Vec::new();
        while let Some(flight) = in_flight.pop_unsent(15) {
            back.push(flight.id);
        }
        assert_eq!(back, [id(2)]);
        assert!(in_flight.cancelled.is_empty());
        assert_eq!(in_flight.len(), 2);
        assert_eq!(in_flight.pop().map(|it| it.id), Some(id(0)));
        assert_eq!(in_flight.pop().map(|it| it.id), Some(id(1)));
        assert!(in_flight.pop().is_none());
        assert!(in_flight.numbers.unwrap().is_empty());
    }
}
