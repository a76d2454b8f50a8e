//! Connections, catch-up, and the history of the bucket.

use exchange::mutant::{Mutant, active};

use super::Replica;
use crate::flights::{Flight, Stage};
use crate::message::{Change, ChangeKind, Command, Epoch, OperationId, Subject, Value};
use crate::state::State;
use crate::table::Flag;

impl Replica {
    pub(super) fn connected(
        &mut self,
        now_ms: u64,
        epoch: Option<(Epoch, u64)>,
        first: u64,
        last: u64,
    ) {
        self.disconnected(now_ms);
        self.counters.connects += 1;
        let known = std::mem::replace(&mut self.stream.mark.epoch, epoch.map(|(epoch, _)| epoch));
        self.stream.mark.revision = epoch.map_or(0, |(_, revision)| revision);
        self.stream.mark.due_ms = now_ms + self.jitter_ms();
        let is_epoch = epoch.is_some() && self.stream.mark.epoch == known;
        let is_same = is_epoch && last >= self.stream.position || active(Mutant::EpochIgnored);
        let is_short = now_ms - self.stream.detached_ms < self.settings.touch_after_ms();
        let is_whole = self.stream.is_based && first <= self.stream.position + 1;
        if is_same && is_short && is_whole {
            self.counters.resumes += 1;
            self.watch(Some(self.stream.position + 1));
        } else {
            let had_history = known.is_some();
            self.counters.epochs += u64::from(had_history && !is_same);
            self.snapshot(!is_same);
        }
        if !is_epoch && epoch.is_some() {
            // Another daemon has noticed the change.
            self.stream.mark.renewing = None;
        } else if epoch.is_none() || !is_same || self.stream.mark.renewing.is_some() {
            self.renew_epoch(now_ms);
        }
    }

    /// The connection ended. Writes without an outcome wait again: catch-up shows whether they took effect.
    pub(super) fn disconnected(&mut self, now_ms: u64) {
        if self.stream.watch.take().is_none() {
            return;
        }
        self.stream.state = State::Detached;
        self.stream.is_caught_up = false;
        self.stream.detached_ms = now_ms;
        self.stream.mark.is_writing = false;
        self.outbox.clear();
        self.repairs.interrupt();
        for flight in self.writer.flights.take_all() {
            self.counters.unknown += u64::from(flight.stage == Stage::Sent);
            let Subject::Client(key) = flight.subject else { continue };
            if let Some(entry) = self.table.find_mut(&key) {
                // If it was a touch, the next use writes it again.
                entry.published_ms = now_ms.saturating_sub(self.settings.touch_after_ms());
            }
            self.release(now_ms, &key);
        }
    }

    fn watch(&mut self, from: Option<u64>) {
        let operation = self.source.operation();
        self.stream.watch = Some(operation);
        self.stream.is_caught_up = false;
        self.stream.state = State::CatchingUp;
        self.outbox.push_back(Command::Watch { operation, from });
    }

    /// Forgets the server's part of all entries and reads it from the beginning.
    pub(super) fn snapshot(&mut self, is_new_history: bool) {
        self.counters.snapshots += 1;
        (0..=u8::MAX).for_each(|shard| self.shards.restart(shard));
        self.stream.is_based = false;
        self.stream.is_new_history |= is_new_history;
        self.stream.position = 0;
        self.repairs.clear();
        self.proofs.forget_captured();
        self.watch(None);
    }

    pub(super) fn caught_up(&mut self, operation: OperationId, revision: u64) {
        if self.stream.watch != Some(operation) {
            return;
        }
        self.stream.position = self.stream.position.max(revision);
        self.stream.is_caught_up = true;
        self.stream.is_based = true;
        for shard in 0..=u8::MAX {
            if self.shards.is_reading(shard) && !self.repairs.is_wanted(shard) {
                self.shards.complete(shard, 0);
            }
        }
        self.repairs.start_walk();
    }

    /// The bucket has revisions of another history, although its epoch is the same.
    pub(super) fn rolled_back(&mut self, now_ms: u64) {
        if !active(Mutant::EpochIgnored) {
            self.counters.epochs += 1;
            self.snapshot(true);
            self.renew_epoch(now_ms);
        }
    }

    /// Writes a new epoch, so that every daemon learns of the change.
    fn renew_epoch(&mut self, now_ms: u64) {
        let epoch = self.source.epoch();
        let epoch = *self.stream.mark.renewing.get_or_insert(epoch);
        self.write_epoch(now_ms, epoch);
    }

    fn write_epoch(&mut self, now_ms: u64, epoch: Epoch) {
        let operation = self.source.operation();
        let (subject, expect) = (Subject::Epoch, self.stream.mark.revision);
        let flight = Flight { subject, expected: expect, sent_ms: now_ms, stage: Stage::Sent };
        self.writer.flights.insert(operation, flight);
        self.counters.written += 1;
        self.stream.mark.is_writing = true;
        self.stream.mark.due_ms = now_ms + self.jitter_ms();
        let value = Some(Value::Epoch(epoch));
        self.outbox.push_back(Command::Write { operation, subject, value, expect });
    }

    /// Writes the mark in the stream, if no other daemon has written it for some time.
    pub(super) fn write_mark(&mut self, now_ms: u64) {
        if self.mark_due_ms().is_some_and(|due| now_ms >= due) {
            match self.stream.mark.epoch {
                Some(epoch) => self.write_epoch(now_ms, epoch),
                None => self.renew_epoch(now_ms),
            }
        }
    }

    pub(super) fn mark_due_ms(&self) -> Option<u64> {
        let is_possible = self.stream.state == State::InSync && !self.stream.mark.is_writing;
        is_possible.then_some(self.stream.mark.due_ms)
    }

    /// The time to the next mark: daemons choose different ones, so that one of them writes it.
    fn jitter_ms(&mut self) -> u64 {
        let mark_ms = self.settings.mark_ms;
        mark_ms + self.source.random.draw() % (mark_ms / 2 + 1)
    }

    /// The watch delivered a change of the key `_epoch`.
    pub(super) fn mark_seen(&mut self, now_ms: u64, change: Change) {
        let jitter_ms = self.jitter_ms();
        let mark = &mut self.stream.mark;
        let ChangeKind::Put(Value::Epoch(epoch)) = change.kind else {
            // It is written again soon. The history is the same.
            mark.revision = 0;
            mark.due_ms = now_ms + jitter_ms / 8;
            return;
        };
        mark.revision = change.revision;
        mark.due_ms = now_ms + jitter_ms;
        let known = mark.epoch.replace(epoch);
        let is_known = known.is_none_or(|known| known == epoch);
        let is_ours = mark.renewing == Some(epoch);
        if known != Some(epoch) {
            mark.renewing = None;
        }
        if is_known || is_ours || active(Mutant::EpochIgnored) {
            self.take_digest(now_ms, change.revision);
            return;
        }
        self.counters.epochs += 1;
        self.snapshot(true);
    }

    /// What the key `_epoch` contains, after a lost race.
    pub(super) fn mark_read(&mut self, change: Option<Change>) {
        let mark = &mut self.stream.mark;
        match change {
            Some(change) if matches!(change.kind, ChangeKind::Put(_)) => {
                mark.revision = mark.revision.max(change.revision);
            }
            _ => mark.revision = 0,
        }
        mark.is_writing = false;
    }

    /// A write of this key has ended. A later change of the key can be written.
    pub(super) fn release(&mut self, now_ms: u64, key: &crate::key::Key) {
        let Some(place) = self.table.place(key) else { return };
        let entry = self.table.at_mut(place);
        entry.set(Flag::Awaiting, false);
        if entry.is(Flag::Dirty) && !entry.is(Flag::Refused) {
            self.queue_first(now_ms, place);
        }
    }
}
