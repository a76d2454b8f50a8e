//! The time of a world and its queue of events.
//!
//! Time is virtual and jumps to the next event. All events are in one queue, ordered by time. Ties are broken randomly,
//! so that the gateway cannot rely on an order that the real world does not guarantee.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::chance::{Actor, Chance, Chances};
use crate::scheduled_event::{Moment, ScheduledEvent};

/// The present and the future of a world.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// The real instant that represents the beginning; only differences are observable.
    pub(crate) origin: Instant,
    pub(crate) now: Moment,
    chances: Chances,
    /// The scheduled events, by time, by rank among those of the same time, and by sequence number.
    queue: BTreeMap<(Moment, u64, u64), ScheduledEvent>,
    queued: u64,
}

impl Timeline {
    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            origin: Instant::now(),
            now: Moment::ZERO,
            chances: Chances::new(seed),
            queue: BTreeMap::new(),
            queued: 0,
        }
    }

    /// Schedules an event at `at`, or now if `at` has passed.
    pub(crate) fn add(&mut self, at: Moment, scheduled_event: ScheduledEvent) {
        self.queued += 1;
        let at = at.max(self.now);
        let tie = self.chances.rank(scheduled_event.actor(), at);
        self.queue.insert((at, tie, self.queued), scheduled_event);
    }

    /// Returns the random numbers for the current action of `actor`.
    pub(crate) fn chance_of(&mut self, actor: Actor) -> Chance {
        self.chances.of(actor, self.now)
    }

    /// Removes and returns the next event until `until`, and sets the clock to its time.
    pub(crate) fn next(&mut self, until: Option<Moment>) -> Option<ScheduledEvent> {
        let at = self.queue.first_key_value().map(|((at, ..), _)| *at)?;
        if until.is_some_and(|until| at > until) {
            return None;
        }
        self.now = self.now.max(at);
        self.queue.pop_first().map(|(_, scheduled_event)| scheduled_event)
    }
}
