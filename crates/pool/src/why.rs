//! Why a request went where it went: the last decisions of a pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId, WorkerIndex};

use crate::failed::Retry;
use crate::schedule::Choice;
use crate::settings::Schedule;

/// Places whose free slots a decision remembers.
pub const PLACES_SEEN: u32 = 64;

/// A worker that could not be chosen whatever it had to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// Its index.
    pub index: WorkerIndex,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Why: `starting`, `ending`, `down`, `ejected`, `disabled`, `drained`, `weight 0`, `backup`.
    pub why: &'static str,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It was given to this worker.
    Given(WorkerId, Choice),
    /// It was refused.
    Refused(Cause),
    /// It came back from a worker and waits again.
    Returned(Retry),
    /// The worker that its client is bound to cannot be had, for this reason, and it may go to
    /// another.
    Rescheduled(&'static str),
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The request.
    pub id: u64,
    /// When.
    pub at: Instant,
    /// What.
    pub decided: Decided,
    /// The schedule in force.
    pub schedule: Schedule,
    /// Since when it had waited.
    pub since: Instant,
    /// How many others waited.
    pub queued: u32,
    /// Workers that take requests, free or not, of the set in use.
    pub candidates: u32,
    /// Whether that set was the backup workers.
    pub on_backup: bool,
    /// Which of the first [`PLACES_SEEN`] places had a free slot, a bit each.
    pub free: u64,
    /// Whether it had a key, as a digest: keys may be secret.
    pub key: Option<u64>,
    /// The worker printed more than it was asked: its reply may be another request's.
    pub suspect: bool,
    pub(crate) out: Option<Arc<[Out]>>,
}

impl Decision {
    /// One of which no more is known yet.
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

    /// How long it had waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.at.saturating_duration_since(self.since)
    }

    /// Who was out.
    #[must_use]
    pub fn out(&self) -> &[Out] {
        self.out.as_deref().unwrap_or_default()
    }
}

/// The last decisions.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// At most `max`; where it is full, the oldest is at `oldest` and the next is written over it.
    kept: Vec<Decision>,
    oldest: usize,
    max: usize,
    /// Who is out, until somebody's state changes. Most often nobody is, and then it is nothing that
    /// decisions would have to share and count.
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

    /// The place of the next decision, in which the oldest may stand. There is a decision for every
    /// request, so it is written where it stays. None where none are kept.
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

    /// All, the oldest first.
    fn all(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        let (newer, older) = self.kept.split_at(self.oldest);
        older.iter().chain(newer)
    }

    /// The replies to these requests, which are in their order, are suspect.
    pub(crate) fn suspect(&mut self, ids: &[u64]) {
        for decision in &mut self.kept {
            let is_given = matches!(decision.decided, Decided::Given(..));
            decision.suspect |= is_given && ids.binary_search(&decision.id).is_ok();
        }
    }

    /// All about one request, the oldest first.
    pub(crate) fn of(&self, id: u64) -> impl Iterator<Item = &Decision> {
        self.all().filter(move |decision| decision.id == id)
    }

    /// All, the latest first.
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
