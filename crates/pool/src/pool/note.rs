//! Keeps the reason of every decision.

use std::time::Duration;

use exchange::{Cause, WorkerId};

use super::Pool;
use crate::Payload;
use crate::queue::Facts;
use crate::schedule::Choice;
use crate::why::{Decided, Decision, Out};

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

    pub(super) fn note_return(&mut self, facts: &Facts) {
        self.note(facts, Decided::Returned, self.seats.free);
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
        self.decisions.push(Decision {
            id: facts.id,
            at: self.now,
            decided,
            schedule: self.settings.schedule,
            waited: self.now.checked_duration_since(facts.since).unwrap_or(Duration::ZERO),
            queued: self.queue.length(),
            candidates: self.free.candidates(),
            on_backup: self.free.is_on_backup(),
            free,
            key: facts.key.map(|key| key.hash()),
            out,
        });
    }

    /// Who can be given nothing new, and why.
    fn outs(&self) -> Vec<Out> {
        let places = self.workers().filter_map(|worker| {
            let why = worker.out?;
            Some(Out { place: worker.place, name: worker.name.map(str::to_owned), why })
        });
        places.collect()
    }
}
