//! Keeps the reason of every decision.

use std::time::Instant;

use exchange::{Cause, WorkerId};

use super::Pool;
use crate::failed::Retry;
use crate::queue::{Entry, Facts};
use crate::schedule::Choice;
use crate::why::{Decided, Decision, Out};
use crate::{Ask, Payload};

impl<P: Payload> Pool<P> {
    pub(super) fn note_given(
        &mut self,
        facts: &Facts,
        worker: WorkerId,
        choice: Choice,
        free: u64,
    ) {
        self.note(facts, Decided::Given(worker, choice), free);
    }

    pub(super) fn note_refused(&mut self, facts: &Facts, cause: Cause) {
        self.note(facts, Decided::Refused(cause), self.seats.free);
    }

    pub(super) fn note_return(&mut self, facts: &Facts, retry: Retry) {
        self.note(facts, Decided::Returned(retry), self.seats.free);
    }

    /// A request of this number comes back to a branch: what becomes of it is for its home to decide.
    pub fn note_homeward(&mut self, now: Instant, id: u64, retry: Retry) {
        let entry = Entry::new(now, &Ask { id, ..Ask::default() }, 0);
        self.note_return(&entry.facts, retry);
    }

    /// A request of this number was rejected before it was offered to the pool.
    pub fn note_rejected(&mut self, now: Instant, id: u64, cause: Cause) {
        let entry = Entry::new(now, &Ask { id, ..Ask::default() }, 0);
        self.note(&entry.facts, Decided::Refused(cause), self.seats.free);
    }

    pub(super) fn note_rescheduled(&mut self, facts: &Facts, place: Option<u32>) {
        let gone = |place: u32| self.out_reason(place).unwrap_or("gone");
        let why = place.filter(|_| self.roster.is_named()).map_or("gone", gone);
        self.note(facts, Decided::Rescheduled(why), self.seats.free);
    }

    /// Its client may go to another worker than its own, which has failed it.
    pub(super) fn note_left(&mut self, facts: &Facts) {
        self.note(facts, Decided::Rescheduled("failed it"), self.seats.free);
    }

    /// A worker printed more than it was asked: the replies to these requests, in the order of their
    /// ids, may be another request's.
    pub fn note_suspect(&mut self, ids: &[u64]) {
        self.decisions.suspect(ids);
    }

    fn note(&mut self, facts: &Facts, decided: Decided, free: u64) {
        if !self.decisions.is_on() {
            return;
        }
        let out = match &self.decisions.out {
            Some(out) => out.clone(),
            None => {
                let outs = self.outs();
                let out = (!outs.is_empty()).then(|| outs.into());
                self.decisions.out.insert(out).clone()
            }
        };
        let (at, schedule) = (self.now, self.settings.schedule);
        let blank = || Decision::blank(facts.id, at, decided, schedule);
        let Some(next) = self.decisions.next(blank) else { return };
        next.id = facts.id;
        next.at = at;
        next.decided = decided;
        next.schedule = schedule;
        next.since = facts.since;
        next.queued = self.queue.length();
        next.candidates = self.free.candidates();
        next.on_backup = self.free.is_on_backup();
        next.free = free;
        next.key = facts.key.map(|key| key.hash());
        next.suspect = false;
        if out.is_some() || next.out.is_some() {
            next.out = out;
        }
    }

    /// Who can be given nothing new, and why.
    fn outs(&self) -> Vec<Out> {
        let places = self.workers().filter_map(|worker| {
            let why = worker.out?;
            Some(Out { index: worker.index, name: worker.name.map(str::to_owned), why })
        });
        places.collect()
    }
}
