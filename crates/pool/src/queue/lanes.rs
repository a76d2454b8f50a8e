//! Operations on several lanes: which one goes next if they need the same worker, and how requests move between them.
//!
//! Each lane offers the request whose turn it is. Requests of one level take turns like the flows of one lane; those
//! without a group go in the order of their arrival. Between levels the rule of a lane applies: a level is worth a
//! `step` of waiting. So neither bound clients nor other clients receive more than their share of a worker. A group
//! that waits in two lanes has a turn in each.

use std::time::Instant;

use super::flows::Turn;
use super::{Lane, Queue};
use crate::Queueable;
use crate::request_traits::PRIORITIES;

/// The offer of a lane.
#[derive(Clone, Copy, Debug)]
struct Offer {
    lane: Lane,
    turn: Turn,
    since: Instant,
}

impl Offer {
    /// Whether this offer goes before another one of its level and kind.
    fn is_before(&self, other: &Self) -> bool {
        if self.turn.plain { self.since < other.since } else { self.turn.stamp < other.turn.stamp }
    }
}

/// The offers of several lanes: for each level, the first of the requests with a group and the first of those without.
#[derive(Debug, Default)]
struct Offers([[Option<Offer>; 2]; PRIORITIES as usize]);

impl Offers {
    fn add(&mut self, offer: Offer) {
        let [shared, plain] = &mut self.0[usize::from(offer.turn.level)];
        let best = if offer.turn.plain { plain } else { shared };
        if best.as_ref().is_none_or(|best| offer.is_before(best)) {
            *best = Some(offer);
        }
    }

    /// The offers that are first in their levels, from the most urgent level on.
    fn firsts(&self) -> impl Iterator<Item = Offer> {
        self.0.iter().filter_map(|[shared, plain]| match (shared, plain) {
            (Some(shared), Some(plain)) if shared.turn.stamp < plain.turn.stamp => Some(*shared),
            (shared, plain) => plain.or(*shared),
        })
    }
}

impl<P: Queueable> Queue<P> {
    /// Returns the lane that goes next; among equal ones, the lane that is named first.
    pub(crate) fn next_lane(&self, lanes: impl Iterator<Item = Lane>) -> Option<Lane> {
        let mut offers = Offers::default();
        for offer in lanes.filter_map(|lane| self.offer(lane)) {
            offers.add(offer);
        }
        let due = |offer: &Offer| {
            let step = self.step.saturating_mul(offer.turn.level.into());
            offer.since.checked_add(step)
        };
        // A time that cannot be represented comes last.
        let next = offers.firsts().min_by_key(|offer| {
            let due = due(offer);
            (due.is_none(), due)
        });
        next.map(|offer| offer.lane)
    }

    fn offer(&self, lane: Lane) -> Option<Offer> {
        let flows = match lane {
            Lane::Common => &self.common,
            Lane::Bound(worker) => self.bound.get(worker as usize)?,
            // Requests of this lane go before all others.
            Lane::Retry => return None,
        };
        let place = self.first(lane)?;
        let waiting = self.at(place);
        Some(Offer { lane, turn: flows.turn(waiting.flow), since: waiting.entry.info.since })
    }

    /// Moves the next request of the common lane to the lane of this worker. It goes to the head if it would be served
    /// before the requests there.
    pub(crate) fn bind_next(&mut self, worker: u32) {
        let own = Lane::Bound(worker);
        if let Some(place) = self.first(Lane::Common) {
            let first = self.next_lane([own, Lane::Common].into_iter()) == Some(Lane::Common);
            self.leave(place);
            self.enter(place, own, first);
        }
    }

    /// Moves the requests that wait for this worker to the common lane, before all others, in the order of their turns.
    pub(crate) fn unbind(&mut self, worker: u32) {
        let mut places = Vec::new();
        while let Some(place) = self.first(Lane::Bound(worker)) {
            self.leave(place);
            places.push(place);
        }
        for place in places.into_iter().rev() {
            self.enter(place, Lane::Common, true);
        }
    }
}
