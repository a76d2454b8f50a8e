//! Workers whose free slots are kept for one client.
//!
//! ```text
//!   open ──handle_kept(client)──► kept ──handle_open, or the worker ends──► open
//!                                  │ ▲
//!                                  └─┘ handle_kept(another client, or none)
//! ```
//!
//! While other clients wait, a kept worker is given nothing as long as other workers serve: one client
//! alone, whose requests are rare among many, would otherwise keep it for ever.
//!
//! The owner of a worker keeps it while the worker is checked for output that nobody asked for: a
//! request of the client that was answered last may be given to it at once, any other waits or goes
//! to another worker. The order of the queue is not changed: the client of a kept worker is served
//! only when its request is next.

use std::time::Instant;

use exchange::WorkerId;

use super::Pool;
use super::reservations::Reservation;
use crate::Queueable;
use crate::queue::{EntryInfo, Lane, QueueEntry};
use crate::schedule::Choice;

impl<P: Queueable> Pool<P> {
    /// From now on the free slots of this worker are for requests of this client alone
    /// ([`RequestTraits::client`](crate::RequestTraits::client)), without one for nobody, until [`Self::handle_open`].
    /// Called before the slot is released which another client must not be given.
    pub fn handle_reserved(&mut self, now: Instant, worker: WorkerId, client: Option<u64>) {
        self.begin(now);
        if let Some(place) = self.ready_place(worker) {
            self.reservations.set(place, Reservation::For(client));
            self.refresh(place);
        }
        self.turn();
    }

    /// The free slots of this worker are for anybody again.
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

    /// Whether the worker at `place` has a slot that nobody uses.
    fn has_slot(&self, place: u32) -> bool {
        self.workers.at(place).in_use < self.slot_states.slots(place)
    }

    /// The place that is kept for the client of a request which need not wait.
    pub(super) fn kept_for(&self, asked: &QueueEntry, lane: Lane) -> Option<u32> {
        let client = asked.info.client.filter(|_| self.reservations.any())?;
        if !self.goes_at_once(asked.bytes) || !self.may_give() {
            return None;
        }
        let is_for = |place: &u32| {
            self.reservations.client(*place) == Some(client)
                && self.has_slot(*place)
                && !asked.failed.each().any(|failed| failed == *place)
        };
        match lane {
            // The schedule comes first: a client that asks for many, such as a proxy, is spread as before.
            Lane::Common if self.free.any() => None,
            Lane::Common => self
                .reservations
                .places()
                .find(|place| is_for(place) && self.worker_table.at(*place).is_open()),
            Lane::Bound(place) => Some(place).filter(is_for),
            Lane::Retry => None,
        }
    }

    /// Gives kept workers what is next, where that is of the client that they are kept for.
    pub(super) fn dispatch_kept(&mut self) {
        if !self.reservations.any() {
            return;
        }
        for place in self.reservations.places() {
            while self.may_extend()
                && let Some(client) = self.reservations.client(place)
                && self.may_give()
                && self.has_slot(place)
                && let Some(lane) = self.next_of_kept(place, client)
                && self.secure(place)
            {
                self.give(place, lane, Choice::Reserved);
            }
        }
    }

    /// Whether the client of a kept worker would have to wait for it: nobody else waits, or no other
    /// worker serves.
    fn may_extend(&self) -> bool {
        let others = self.free.candidates() > self.reservations.count;
        !others || self.queue.length() == 1 && !self.free.any()
    }

    /// The lane whose next request is this client's, if that lane is next for this worker.
    fn next_of_kept(&mut self, place: u32, client: u64) -> Option<Lane> {
        let common = (self.queue.common().0 > 0).then_some(Lane::Common);
        let own = (self.queue.bound(place) > 0).then_some(Lane::Bound(place));
        let lane = self.queue.next_lane(common.into_iter().chain(own))?;
        let (info, _) = self.queue.next(lane)?;
        let is_its_own = info.client == Some(client)
            && !self.queue.next_failed(lane).each().any(|failed| failed == place)
            && (lane != Lane::Common || self.may_be_given(&info, place));
        is_its_own.then_some(lane)
    }

    /// Whether its client is bound to no other worker.
    fn may_be_given(&mut self, info: &EntryInfo, place: u32) -> bool {
        match self.lane(info, false) {
            Ok(Lane::Bound(own)) => own == place,
            Ok(Lane::Common) => true,
            Ok(Lane::Retry) | Err(_) => false,
        }
    }

    /// Sweeps what this file keeps.
    pub(super) fn check_kept(&self) {
        let reservations =
            self.reservations.places().filter(|place| self.reservations.is_kept(*place));
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
