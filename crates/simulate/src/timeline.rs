//! The time of a world, and what is to happen in it.
//!
//! Time is virtual and jumps to what happens next. Everything that happens is in one queue, in the
//! order of its moment; ties are broken by chance, so that no order is relied on that the real
//! world does not give.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::chance::{Actor, Chance, Chances};
use crate::happening::{Happening, Moment};

/// The present and the future of a world.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// The real instant that stands for the beginning; only differences are seen.
    pub(crate) origin: Instant,
    pub(crate) now: Moment,
    chances: Chances,
    /// What is to happen, by its moment, its rank among those of that moment, and its number.
    queue: BTreeMap<(Moment, u64, u64), Happening>,
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

    /// Lets something happen at `at`, or now if that is over.
    pub(crate) fn add(&mut self, at: Moment, happening: Happening) {
        self.queued += 1;
        let at = at.max(self.now);
        let tie = self.chances.rank(happening.actor(), at);
        self.queue.insert((at, tie, self.queued), happening);
    }

    /// The numbers for what `actor` does now.
    pub(crate) fn chance_of(&mut self, actor: Actor) -> Chance {
        self.chances.of(actor, self.now)
    }

    /// The next thing to happen by `until`; its moment becomes the present.
    pub(crate) fn next(&mut self, until: Option<Moment>) -> Option<Happening> {
        let at = self.queue.first_key_value().map(|((at, ..), _)| *at)?;
        if until.is_some_and(|until| at > until) {
            return None;
        }
        self.now = self.now.max(at);
        self.queue.pop_first().map(|(_, happening)| happening)
    }
}
