//! Workers whose free slots are reserved for one client.
//!
//! ```text
//!   open ──handle_reserved(client)──► reserved ──handle_open, or the worker ends──► open
//!                                       │ ▲
//!                                       └─┘ handle_reserved(another client, or none)
//! ```
//!
//! While other clients wait and other workers serve, a reserved worker receives nothing. Otherwise one client with rare
//! requests among many others would keep the worker reserved without end.
//!
//! The caller reserves a worker while the worker is checked for unrequested output. A request of the client that was
//! answered last may be sent to it immediately; any other request waits or goes to another worker. The order of the
//! queue does not change: the client of a reserved worker is served only when its request is next.

use std::time::Instant;

use exchange::WorkerId;

use super::Pool;
use super::reservations::Reservation;
use crate::Queueable;
use crate::queue::{EntryInfo, Lane, QueueEntry};
use crate::schedule::Choice;

impl<P: Queueable> Pool<P> {
    /// Reserves the free slots of this worker for requests of this client
    /// ([`RequestTraits::client`](crate::RequestTraits::client)) until [`Self::handle_open`]. With `None`, the slots
    /// serve no request. It is called before the slot is released that another client must not receive.
    pub fn handle_reserved(&mut self, now: Instant, worker: WorkerId, client: Option<u64>) {
        self.begin(now);
        if let Some(place) = self.ready_place(worker) {
            self.reservations.set(place, Reservation::For(client));
            self.refresh(place);
        }
        self.turn();
    }

    /// The free slots of this worker serve any client again.
    pub fn handle_open(&mut self, now: Instant, worker: WorkerId) {
        self.begin(now);
        if let Some(place) = self.ready_place(worker) {
            self.reservations.clear(place);
            self.refresh(place);
        }
        self.turn();
    }

    fn ready_place(&self, worker: WorkerId) -> Option<u32> {
        let place = self.workers.find(worker)?;
        (self.workers.at(place).state == crate::workers::State::Ready).then_some(place)
    }

    /// Whether the worker at `place` has a slot that is not in use.
    fn has_slot(&self, place: u32) -> bool {
        self.workers.at(place).in_use < self.slot_states.slots(place)
    }

    /// Returns the place that is reserved for the client of a request that need not wait.
    pub(super) fn reserved_for(&self, request: &QueueEntry, lane: Lane) -> Option<u32> {
        let client = request.info.client.filter(|_| self.reservations.any())?;
        if !self.goes_at_once(request.bytes) || !self.may_give() {
            return None;
        }
        let is_for = |place: &u32| {
            self.reservations.client(*place) == Some(client)
                && self.has_slot(*place)
                && !request.failed.each().any(|failed| failed == *place)
        };
        match lane {
            // The schedule takes precedence: the requests of a client that sends many, such as a proxy, are still
            // spread.
            Lane::Common if self.free.any() => None,
            Lane::Common => self
                .reservations
                .places()
                .find(|place| is_for(place) && self.worker_table.at(*place).is_open()),
            Lane::Bound(place) => Some(place).filter(is_for),
            Lane::Retry => None,
        }
    }

    /// Gives the next requests to reserved workers, if they belong to the clients that the workers are reserved for.
    pub(super) fn dispatch_reserved(&mut self) {
        if !self.reservations.any() {
            return;
        }
        for place in self.reservations.places() {
            while self.may_extend()
                && let Some(client) = self.reservations.client(place)
                && self.may_give()
                && self.has_slot(place)
                && let Some(lane) = self.next_of_reserved(place, client)
                && self.secure(place)
            {
                self.give(place, lane, Choice::Reserved);
            }
        }
    }

    /// Whether the client of a reserved worker would have to wait for it: no other request waits and no other worker is
    /// free, or no other worker serves.
    fn may_extend(&self) -> bool {
        let others = self.free.candidates() > self.reservations.count;
        !others || self.queue.length() == 1 && !self.free.any()
    }

    /// Returns the lane whose next request belongs to this client, if that lane is next for this worker.
    fn next_of_reserved(&mut self, place: u32, client: u64) -> Option<Lane> {
        let common = (self.queue.common().0 > 0).then_some(Lane::Common);
        let own = (self.queue.bound(place) > 0).then_some(Lane::Bound(place));
        let lane = self.queue.next_lane(common.into_iter().chain(own))?;
        let (info, _) = self.queue.next(lane)?;
        let is_its_own = info.client == Some(client)
            && !self.queue.next_failed(lane).each().any(|failed| failed == place)
            && (lane != Lane::Common || self.may_be_given(&info, place));
        is_its_own.then_some(lane)
    }

    /// Whether the client of a request is bound to no other worker.
    fn may_be_given(&mut self, info: &EntryInfo, place: u32) -> bool {
        match self.lane(info, false) {
            Ok(Lane::Bound(own)) => own == place,
            Ok(Lane::Common) => true,
            Ok(Lane::Retry) | Err(_) => false,
        }
    }

    /// Checks the invariants of this file.
    pub(super) fn check_reservations(&self) {
        let reservations =
            self.reservations.places().filter(|place| self.reservations.is_reserved(*place));
        let ready = |place: &u32| {
            !self.workers.is_vacant(*place)
                && self.workers.at(*place).state == crate::workers::State::Ready
        };
        assert_eq!(
            reservations.clone().count(),
            self.reservations.count as usize,
            "kept workers are counted"
        );
        assert!(reservations.clone().all(|place| ready(&place)), "only a ready worker is kept");
    }
}
