//! Records the reason for every decision.

use std::time::Instant;

use exchange::{Cause, WorkerId};

use super::Pool;
use crate::failed::Retry;
use crate::queue::{EntryInfo, QueueEntry};
use crate::schedule::Choice;
use crate::why::{Decided, Decision, Out};
use crate::{Queueable, RequestTraits};

impl<P: Queueable> Pool<P> {
    pub(super) fn note_given(
        &mut self,
        info: &EntryInfo,
        worker: WorkerId,
        choice: Choice,
        free: u64,
    ) {
        self.note(info, Decided::Given(worker, choice), free);
    }

    pub(super) fn note_refused(&mut self, info: &EntryInfo, cause: Cause) {
        self.note(info, Decided::Refused(cause), self.slot_states.free);
    }

    pub(super) fn note_return(&mut self, info: &EntryInfo, retry: Retry) {
        self.note(info, Decided::Returned(retry), self.slot_states.free);
    }

    /// Records that a request returned to a member shard. The owner shard decides what happens to it.
    pub fn note_returned_to_owner(&mut self, now: Instant, id: u64, retry: Retry) {
        let entry = QueueEntry::new(now, &RequestTraits { id, ..RequestTraits::default() }, 0);
        self.note_return(&entry.info, retry);
    }

    /// Records that a request was rejected before it was submitted to the pool.
    pub fn note_rejected(&mut self, now: Instant, id: u64, cause: Cause) {
        let entry = QueueEntry::new(now, &RequestTraits { id, ..RequestTraits::default() }, 0);
        self.note(&entry.info, Decided::Refused(cause), self.slot_states.free);
    }

    pub(super) fn note_rescheduled(&mut self, info: &EntryInfo, place: Option<u32>) {
        let gone = |place: u32| self.out_reason(place).unwrap_or("gone");
        let why = place.filter(|_| self.worker_table.is_named()).map_or("gone", gone);
        self.note(info, Decided::Rescheduled(why), self.slot_states.free);
    }

    /// Records that the client of a request may go to another worker than its own, because its own has failed the
    /// request.
    pub(super) fn note_left(&mut self, info: &EntryInfo) {
        self.note(info, Decided::Rescheduled("failed it"), self.slot_states.free);
    }

    /// A worker printed more than the requests required. The replies to these requests may belong to other requests.
    /// `ids` is sorted.
    pub fn note_suspect(&mut self, ids: &[u64]) {
        self.decisions.suspect(ids);
    }

    fn note(&mut self, info: &EntryInfo, decided: Decided, free: u64) {
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
        let blank = || Decision::blank(info.id, at, decided, schedule);
        let Some(next) = self.decisions.next(blank) else { return };
        next.id = info.id;
        next.at = at;
        next.decided = decided;
        next.schedule = schedule;
        next.since = info.since;
        next.queued = self.queue.length();
        next.candidates = self.free.candidates();
        next.on_backup = self.free.is_on_backup();
        next.free = free;
        next.key = info.key.map(|key| key.hash());
        next.suspect = false;
        if out.is_some() || next.out.is_some() {
            next.out = out;
        }
    }

    /// The workers that receive no new requests, and why.
    fn outs(&self) -> Vec<Out> {
        let places = self.workers().filter_map(|worker| {
            let why = worker.out?;
            Some(Out { index: worker.index, name: worker.name.map(str::to_owned), why })
        });
        places.collect()
    }
}
