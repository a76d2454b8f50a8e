//! Several lanes at once: which of them goes next where they want the same worker, and who moves from
//! one to another.
//!
//! Each lane offers the request whose turn it is in it. Of those of one level, they take turns as
//! flows of one lane do; those who share with nobody go in the order in which they came. Between
//! levels it is as within a lane: a level is worth a `step` of waiting. So neither who is bound
//! nor who is not has more of a worker than its share. A flow that waits in two lanes has a turn in each.

use std::time::Instant;

use super::flows::Turn;
use super::{Lane, Queue};
use crate::Queueable;
use crate::request_traits::PRIORITIES;

/// What a lane offers.
#[derive(Clone, Copy, Debug)]
struct Offer {
    lane: Lane,
    turn: Turn,
    since: Instant,
}

impl Offer {
    /// Whether it goes before another of its level and its kind.
    fn is_before(&self, other: &Self) -> bool {
        if self.turn.plain { self.since < other.since } else { self.turn.stamp < other.turn.stamp }
    }
}

/// What several lanes offer: of each level the first of those who share, and of those who do not.
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

    /// Those that are first in their levels, from the most urgent on.
    fn firsts(&self) -> impl Iterator<Item = Offer> {
        self.0.iter().filter_map(|[shared, plain]| match (shared, plain) {
            (Some(shared), Some(plain)) if shared.turn.stamp < plain.turn.stamp => Some(*shared),
            (shared, plain) => plain.or(*shared),
        })
    }
}

impl<P: Queueable> Queue<P> {
    /// Of these lanes the one that goes next; among equals the one that is named first.
    pub(crate) fn next_lane(&self, lanes: impl Iterator<Item = Lane>) -> Option<Lane> {
        let mut offers = Offers::default();
        for offer in lanes.filter_map(|lane| self.offer(lane)) {
            offers.add(offer);
        }
        let due = |offer: &Offer| {
            let step = self.step.saturating_mul(offer.turn.level.into());
            offer.since.checked_add(step)
        };
        // An instant beyond the end of time comes last.
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
            // Those go before all others.
            Lane::Retry => return None,
        };
        let place = self.first(lane)?;
        let waiting = self.at(place);
        Some(Offer { lane, turn: flows.turn(waiting.flow), since: waiting.entry.info.since })
    }

    /// The next of the common lane waits for this worker from now on: before those who wait for it if
    /// it would go before them.
    pub(crate) fn bind_next(&mut self, worker: u32) {
        let own = Lane::Bound(worker);
        if let Some(place) = self.first(Lane::Common) {
            let first = self.next_lane([own, Lane::Common].into_iter()) == Some(Lane::Common);
            self.leave(place);
            self.enter(place, own, first);
        }
    }

    /// Those who wait for this worker wait for any from now on, before all others, in the order of
    /// their turns.
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
