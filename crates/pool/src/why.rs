//! The recent decisions of a pool. They explain which worker a request was given to and why.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId, WorkerIndex};

use crate::failed::Retry;
use crate::schedule::Choice;
use crate::settings::Schedule;

/// The number of places whose free slots are recorded in a decision.
pub const PLACES_SEEN: u32 = 64;

/// A worker that could not be chosen, regardless of its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// The index of the worker.
    pub index: WorkerIndex,
    /// The name, if it has one.
    pub name: Option<String>,
    /// Why: `starting`, `ending`, `down`, `ejected`, `disabled`, `drained`, `weight 0`, `backup`.
    pub why: &'static str,
}

/// The result of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// The request was given to this worker.
    Given(WorkerId, Choice),
    /// The request was rejected.
    Refused(Cause),
    /// The request was returned by a worker and waits again.
    Returned(Retry),
    /// The worker that the client is bound to is not available, for this reason. The request may go to another worker.
    Rescheduled(&'static str),
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The request.
    pub id: u64,
    /// When the decision was made.
    pub at: Instant,
    /// The result.
    pub decided: Decided,
    /// The schedule at that time.
    pub schedule: Schedule,
    /// Since when the request had waited.
    pub since: Instant,
    /// The number of other requests that waited.
    pub queued: u32,
    /// The number of workers in the set in use that serve any client, whether they have a free slot or not.
    pub candidates: u32,
    /// Whether that set was the backup workers.
    pub on_backup: bool,
    /// Which of the first [`PLACES_SEEN`] places had a free slot, one bit each.
    pub free: u64,
    /// The digest of the affinity key, if the request had one. Keys may be secret.
    pub key: Option<u64>,
    /// Whether the worker printed more than the requests required: its reply may belong to another request.
    pub suspect: bool,
    pub(crate) out: Option<Arc<[Out]>>,
}

impl Decision {
    /// A decision without further details.
    pub(crate) const fn blank(id: u64, at: Instant, decided: Decided, schedule: Schedule) -> Self {
        Self {
            id,
            at,
            decided,
            schedule,
            since: at,
            queued: 0,
            candidates: 0,
            on_backup: false,
            free: 0,
            key: None,
            suspect: false,
            out: None,
        }
    }

    /// How long the request had waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.at.saturating_duration_since(self.since)
    }

    /// The workers that could not be chosen.
    #[must_use]
    pub fn out(&self) -> &[Out] {
        self.out.as_deref().unwrap_or_default()
    }
}

/// The recent decisions.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// At most `max` decisions. When it is full, the oldest is at `oldest` and the next decision overwrites it.
    kept: Vec<Decision>,
    oldest: usize,
    max: usize,
    /// The workers that cannot be chosen, until the state of a worker changes. Most often there is no such worker; then
    /// the inner value is `None`, and decisions need not share and count an empty list.
    pub(crate) out: Option<Option<Arc<[Out]>>>,
}

impl Decisions {
    pub(crate) fn new(max: u32) -> Self {
        let max = max as usize;
        Self { kept: Vec::with_capacity(max), oldest: 0, max, out: None }
    }

    pub(crate) fn handle_max(&mut self, max: u32) {
        self.max = max as usize;
        self.kept.rotate_left(self.oldest);
        self.oldest = 0;
        self.kept.drain(..self.kept.len().saturating_sub(self.max));
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.max > 0
    }

    /// Returns the entry for the next decision. It may still contain the oldest one. Every request makes a decision, so
    /// it is written in place. `None` if no decisions are kept.
    #[inline]
    pub(crate) fn next(&mut self, blank: impl FnOnce() -> Decision) -> Option<&mut Decision> {
        if self.kept.len() < self.max {
            self.kept.push(blank());
            return self.kept.last_mut();
        }
        let next = self.kept.get_mut(self.oldest)?;
        self.oldest = if self.oldest + 1 == self.max { 0 } else { self.oldest + 1 };
        Some(next)
    }

    /// All decisions, the oldest first.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        let (newer, older) = self.kept.split_at(self.oldest);
        older.iter().chain(newer)
    }

    /// Marks the replies to these requests as suspect. `ids` is sorted.
    pub(crate) fn suspect(&mut self, ids: &[u64]) {
        for decision in &mut self.kept {
            let is_given = matches!(decision.decided, Decided::Given(..));
            decision.suspect |= is_given && ids.binary_search(&decision.id).is_ok();
        }
    }

    /// All decisions about one request, the oldest first.
    pub(crate) fn of(&self, id: u64) -> impl Iterator<Item = &Decision> {
        self.all().filter(move |decision| decision.id == id)
    }

    /// All decisions, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Decision> {
        self.all().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a point to start from; nothing is compared")]
    fn decision() -> Decision {
        Decision::blank(0, Instant::now(), Decided::Refused(Cause::Full), Schedule::RoundRobin)
    }

    fn push(decisions: &mut Decisions, id: u64) {
        if let Some(next) = decisions.next(decision) {
            next.id = id;
        }
    }

    #[test]
    fn the_last_decisions_are_kept_in_their_order_whatever_their_limit_becomes() {
        let mut decisions = Decisions::new(3);
        let (mut kept, mut next) = (Vec::new(), 0);
        for max in [3, 5, 2, 0, 4, 1, 3] {
            decisions.handle_max(max);
            for added in 0..max + 2 {
                kept.drain(..kept.len().saturating_sub(max as usize));
                let shown: Vec<u64> = decisions.latest().map(|decision| decision.id).collect();
                assert!(shown.iter().eq(kept.iter().rev()), "{added} added to {max}: {shown:?}");
                push(&mut decisions, next);
                kept.push(next);
                next += 1;
            }
            kept.drain(..kept.len().saturating_sub(max as usize));
        }
        push(&mut decisions, next);
        push(&mut decisions, next);
        assert_eq!(decisions.of(next).count(), 2);
    }
}
