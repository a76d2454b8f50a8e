//! Why a request went where it went: the last decisions of a pool.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId};

use crate::schedule::Choice;
use crate::settings::Schedule;

/// Places whose free slots a decision remembers.
pub const PLACES_SEEN: u32 = 64;

/// A worker that could not be chosen whatever it had to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// Its place.
    pub place: u32,
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
    /// It never reached its worker and waits again.
    Returned,
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
    /// How long it had waited.
    pub waited: Duration,
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
    pub(crate) out: Option<Arc<[Out]>>,
}

impl Decision {
    /// Who was out.
    #[must_use]
    pub fn out(&self) -> &[Out] {
        self.out.as_deref().unwrap_or_default()
    }
}

/// The last decisions.
#[derive(Debug)]
pub(crate) struct Decisions {
    kept: VecDeque<Decision>,
    max: usize,
    /// Who is out, until somebody's state changes. Most often nobody is, and then it is nothing that
    /// decisions would have to share and count.
    pub(crate) out: Option<Option<Arc<[Out]>>>,
}

impl Decisions {
    pub(crate) fn new(max: u32) -> Self {
        let max = max as usize;
        Self { kept: VecDeque::with_capacity(max), max, out: None }
    }

    pub(crate) fn handle_max(&mut self, max: u32) {
        self.max = max as usize;
        while self.kept.len() > self.max {
            self.kept.pop_front();
        }
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.max > 0
    }

    pub(crate) fn push(&mut self, decision: Decision) {
        if self.kept.len() == self.max {
            self.kept.pop_front();
        }
        self.kept.push_back(decision);
    }

    /// All about one request, the oldest first.
    pub(crate) fn of(&self, id: u64) -> impl Iterator<Item = &Decision> {
        self.kept.iter().filter(move |decision| decision.id == id)
    }

    /// All, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Decision> {
        self.kept.iter().rev()
    }
}
