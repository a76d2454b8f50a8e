//! What can be seen of a pool without changing it.

use std::time::Instant;

use super::{Phase, Pool};
use crate::Payload;
use crate::settings::Settings;
use crate::status::{Counts, Status};
use crate::workers::State;

impl<P: Payload> Pool<P> {
    /// When to call [`handle_time`](Self::handle_time) though nothing has happened. Always later
    /// than the last event.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        let oldest = self.queue.oldest();
        let refused_at = oldest.and_then(|oldest| oldest.checked_add(self.settings.queue.wait));
        let batch_at = oldest
            .filter(|_| self.free.any())
            .and_then(|oldest| oldest.checked_add(self.settings.batch.wait));
        let (sized_at, started_at) = if self.is_sized() {
            let started_at = self.backoff.next_time(self.now, self.pending());
            (self.policy.next_time(&self.load()), started_at)
        } else {
            (None, None)
        };
        [refused_at, batch_at, sized_at, started_at].into_iter().flatten().min()
    }

    /// Whether workers are started and stopped by need.
    pub(super) const fn is_sized(&self) -> bool {
        match self.phase {
            Phase::Serving => true,
            Phase::Draining => !self.queue.is_empty(),
            Phase::Stopping => false,
        }
    }

    /// The state at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            queued: self.queue.length(),
            queued_bytes: self.queue.bytes(),
            oldest: self.queue.oldest(),
            starting: self.workers.starting(),
            idle: self.workers.idle(),
            busy: self.workers.busy(),
            retiring: self.workers.ending(),
            slots_in_use: self.workers.slots_in_use(),
            open: self.is_open(),
            next_start: self.backoff.start_at().filter(|at| *at > self.now),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The settings in force, every number inside its range.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether nothing waits and no slot is in use.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.workers.slots_in_use() == 0
    }

    /// Sweeps every invariant; for tests and simulation.
    ///
    /// # Panics
    /// When one of them does not hold.
    pub fn check(&self) {
        self.queue.check();
        self.workers.check();
        let takes_work = |place| {
            let worker = self.workers.at(place);
            (worker.state == State::Ready).then_some(worker.in_use)
        };
        self.free.check(takes_work);
        let slots = self.settings.slots;
        let free = self
            .workers
            .all()
            .filter(|(_, worker)| worker.state == State::Ready && worker.in_use < slots);
        assert_eq!(free.count(), self.free.count() as usize, "a free slot is offered");
        let next_time = self.next_time();
        assert!(next_time.is_none_or(|at| at > self.now), "nothing due is left undone");
        assert!(!self.is_open() || self.queue.is_empty(), "nobody waits at an open circuit");
    }
}
