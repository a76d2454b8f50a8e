//! Retries: the choice of another worker for a request that workers have failed.
//!
//! The request goes to a worker that has not failed it, chosen by the schedule. If all of these workers are busy, the
//! request waits for one of them in a separate lane, and other requests are given to free workers meanwhile. If there
//! is no such worker, or none became free in time, the request goes to any worker. A client's own worker is tried once
//! more before the client is bound to another one, and then only if that is allowed.

use std::time::{Duration, Instant};

use super::Pool;
use crate::Queueable;
use crate::failed::Failed;
use crate::queue::{EntryInfo, Lane, RetryEntry};
use crate::schedule::{Choice, Eligibility};
use crate::settings::Gone;

/// The maximum time that a request waits for another worker. It never waits longer than half of its remaining time.
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// The number of failures of a client's own worker after which another worker is tried.
const OWN_TIMES: usize = 2;

impl<P: Queueable> Pool<P> {
    /// Returns the lane of a request that workers may have failed. `lane` is its lane if none has.
    pub(super) fn lane_of_retry(
        &mut self,
        lane: Lane,
        request: &EntryInfo,
        failed: &Failed,
    ) -> Lane {
        if failed.is_empty() || !self.free.has_others(failed) {
            return lane;
        }
        match lane {
            Lane::Common | Lane::Retry => Lane::Retry,
            Lane::Bound(place) if self.may_leave(place, failed) => {
                self.note_left(request);
                Lane::Retry
            }
            Lane::Bound(_) => lane,
        }
    }

    /// Whether a client may be bound to another worker than the one at this place.
    fn may_leave(&self, place: u32, failed: &Failed) -> bool {
        let sticky = self.settings.sticky;
        failed.times(place) >= OWN_TIMES
            && self.settings.hold.is_zero()
            && sticky.is_none_or(|sticky| sticky.gone == Gone::Reschedule)
    }

    /// Returns until when a request that has waited since `since` waits for another worker.
    pub(super) fn patience(&self, since: Instant) -> Instant {
        let passed = self.now.saturating_duration_since(since);
        let left = self.settings.queue.wait.saturating_sub(passed);
        self.now + (left / 2).min(PATIENCE_MAX)
    }

    /// When the next of these requests has waited long enough for another worker.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        if self.queue.retries() == 0 {
            return None;
        }
        self.queue.retry_entries().map(|retry| retry.until).min()
    }

    /// Moves requests out of this lane: if no other worker remains or the time is over, to the common lane; if the
    /// client was bound meanwhile, to the lane of its worker.
    pub(super) fn settle_retries(&mut self) {
        if self.queue.retries() == 0 {
            return;
        }
        while let Some((place, lane)) = self.next_to_settle() {
            self.queue.move_retry(place, lane);
            self.call(lane);
        }
    }

    fn next_to_settle(&mut self) -> Option<(u32, Lane)> {
        // Each moved request goes before all others in its lane, so the last one is moved first.
        self.queue.retry_entries().rev().find_map(|retry| {
            let RetryEntry { place, info, failed, until } = retry;
            if until <= self.now || !self.free.has_others(&failed) {
                return Some((place, Lane::Common));
            }
            match self.lane(&info, false) {
                Ok(Lane::Bound(to)) if failed.times(to) == 0 => Some((place, Lane::Bound(to))),
                _ => None,
            }
        })
    }

    /// Gives requests that wait for another worker to one that has a free slot.
    pub(super) fn dispatch_retries(&mut self) {
        while self.queue.retries() > 0 && self.may_give() {
            let found = self.queue.retry_entries().find_map(|retry| {
                let next = self.secure_other(&retry.info, &retry.failed)?;
                Some((retry.place, next))
            });
            let Some((waiting, next)) = found else { return };
            let (payload, info) = self.queue.take_retry(waiting);
            self.give_at_once(next, payload, &info);
        }
    }

    /// Returns the worker whose turn it is among those that have not failed this request, with a token in the cache.
    fn secure_other(&mut self, request: &EntryInfo, failed: &Failed) -> Option<(u32, Choice)> {
        while self.may_give() {
            let next = self.other_for(request, failed)?;
            if self.secure(next.0) {
                return Some(next);
            }
        }
        None
    }

    /// Returns the worker whose turn it is among those with a free slot that have not failed this request.
    pub(super) fn other_for(
        &mut self,
        request: &EntryInfo,
        failed: &Failed,
    ) -> Option<(u32, Choice)> {
        let there = |place: &u32| self.free.holds(*place);
        let eligibility = |place| (place, self.eligibility(place, self.workers.at(place).in_use));
        let hidden: Vec<(u32, Eligibility)> =
            failed.each().filter(there).map(eligibility).collect();
        let hash = self.hash_of(request);
        self.free.next_but(&mut self.random, hash, &hidden)
    }

    /// Whether a request waits for another worker that the worker at this place has not failed.
    pub(super) fn is_wanted_for_retry(&self, place: u32) -> bool {
        self.queue.retries() > 0
            && self.queue.retry_entries().any(|retry| retry.failed.times(place) == 0)
    }

    /// Checks the invariants of this file.
    pub(super) fn check_retries(&self) {
        for retry in self.queue.retry_entries() {
            assert!(!retry.failed.is_empty(), "only what was failed waits for others");
            assert!(self.free.has_others(&retry.failed), "there is somebody else");
            let is_free = |place: &u32| self.free.holds(*place) && retry.failed.times(*place) == 0;
            let served =
                !self.may_give() || !self.worker_table.places().any(|place| is_free(&place));
            assert!(served, "another worker is free for who waits for one");
        }
    }
}
