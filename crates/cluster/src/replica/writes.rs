//! Writes and their outcomes.

use super::Replica;
use crate::flights::{Flight, Stage};
use crate::key::Key;
use crate::message::{Change, Command, OperationId, Subject, Value};
use crate::read::Read;
use crate::table::Flag;

/// The maximum number of operations in flight, as a multiple of the maximum of unacknowledged writes.
const FLIGHTS_FACTOR: usize = 4;

impl Replica {
    /// Returns the next write, if one is due and possible.
    pub(super) fn flush(&mut self, now_ms: u64) -> Option<Command> {
        let due_ms = self.flush_due_ms()?;
        if now_ms < due_ms || !self.writer.pending.is_due(now_ms, &self.settings) {
            return None;
        }
        while self.writer.rate.is_free(now_ms) {
            let (key, is_touch) = self.writer.pending.pop()?;
            if let Some((value, expect)) = self.next_write(now_ms, &key, is_touch) {
                self.writer.rate.take(now_ms);
                let (operation, subject) = (self.source.operation(), Subject::Client(key));
                let stage = Stage::Sent;
                let flight = Flight { subject, expected: expect, sent_ms: now_ms, stage };
                self.writer.flights.insert(operation, flight);
                self.counters.written += 1;
                return Some(Command::Write { operation, subject, value, expect });
            }
        }
        None
    }

    /// When the next write is due, if one is possible.
    pub(super) fn flush_due_ms(&self) -> Option<u64> {
        let window = self.settings.unacknowledged_max;
        let flights = &self.writer.flights;
        let is_open = flights.sent() < window && flights.length() < window * FLIGHTS_FACTOR;
        if !self.stream.is_caught_up || !is_open {
            return None;
        }
        let due = self.writer.pending.due_ms(&self.settings)?;
        Some(due.max(self.writer.rate.next_ms()))
    }

    /// What to write for a key that waited, and the revision to expect.
    fn next_write(
        &mut self,
        now_ms: u64,
        key: &Key,
        is_touch: bool,
    ) -> Option<(Option<Value>, u64)> {
        let place = self.table.place(key)?;
        let entry = *self.table.at(place);
        let queue = if is_touch { Flag::QueuedTouch } else { Flag::QueuedFirst };
        let is_bound = self.is_bound(now_ms, &entry);
        let idle = now_ms.saturating_sub(entry.published_ms);
        let is_recent = idle < self.settings.touch_reported_after_ms();
        if !entry.is(queue) {
            return None;
        }
        self.table.at_mut(place).set(queue, false);
        let (is_dirty, is_deletion) = (entry.is(Flag::Dirty), entry.is(Flag::Removed));
        if entry.is(Flag::Awaiting) || !is_dirty && is_recent {
            return None;
        }
        if is_deletion && entry.expected() == 0 {
            self.remove(place);
            return None;
        }
        let entry = self.table.at_mut(place);
        if !(is_bound || is_dirty && is_deletion) {
            // It expired while it waited.
            entry.target = entry.shared;
            entry.set(Flag::Dirty, false);
            return None;
        }
        entry.set(Flag::Awaiting, true);
        entry.published_ms = now_ms;
        let value = Value::Binding { target: entry.target, origin: self.origin };
        Some(((!is_deletion).then_some(value), entry.expected()))
    }

    pub(super) fn written(&mut self, now_ms: u64, operation: OperationId, revision: u64) {
        let Some(flight) = self.writer.flights.remove(operation, Stage::Sent) else { return };
        self.counters.acknowledged += 1;
        match flight.subject {
            Subject::Epoch => self.stream.mark.is_writing = false,
            Subject::Client(key) if revision <= self.stream.position => self.release(now_ms, &key),
            Subject::Client(_) => {
                let stage = Stage::Accepted(revision);
                self.writer.flights.insert(operation, Flight { stage, ..flight });
            }
        }
    }

    /// Ends the writes that the watch has delivered.
    pub(super) fn release_seen(&mut self, now_ms: u64) {
        while let Some(flight) = self.writer.flights.pop_seen(self.stream.position) {
            if let Subject::Client(key) = flight.subject {
                self.release(now_ms, &key);
            }
        }
    }

    /// The server did not store a write. It is repeated.
    pub(super) fn rejected(&mut self, now_ms: u64, operation: OperationId) {
        let Some(flight) = self.writer.flights.remove(operation, Stage::Sent) else { return };
        self.counters.rejected += 1;
        match flight.subject {
            Subject::Epoch => self.stream.mark.is_writing = false,
            Subject::Client(key) => self.release(now_ms, &key),
        }
    }

    /// Another daemon wrote first: the key is read.
    pub(super) fn lost_race(&mut self, now_ms: u64, operation: OperationId) {
        let Some(flight) = self.writer.flights.remove(operation, Stage::Sent) else { return };
        self.counters.lost_races += 1;
        let operation = self.source.operation();
        let reading = Flight { sent_ms: now_ms, stage: Stage::Reading, ..flight };
        self.writer.flights.insert(operation, reading);
        self.outbox.push_back(Command::Get { operation, subject: flight.subject });
    }

    pub(super) fn got(&mut self, now_ms: u64, operation: OperationId, change: Option<Change>) {
        let Some(flight) = self.writer.flights.remove(operation, Stage::Reading) else { return };
        let Subject::Client(key) = flight.subject else {
            self.mark_read(change);
            return;
        };
        match change {
            Some(change) => self.apply(now_ms, key, change, Read::Get),
            None => self.server_has_none(now_ms, &key),
        }
        self.release(now_ms, &key);
        if change.is_some_and(|change| change.revision < flight.expected) {
            self.rolled_back(now_ms);
        }
    }

    /// The server has neither a value nor a marker: the key was removed without a trace.
    fn server_has_none(&mut self, now_ms: u64, key: &Key) {
        let Some(place) = self.table.place(key) else { return };
        let is_bound = self.is_bound(now_ms, self.table.at(place));
        let entry = self.table.at_mut(place);
        self.shards.unlist(entry);
        if is_bound && entry.is_mine {
            entry.set(Flag::Dirty, true);
        }
    }

    /// Whether an operation has been without an answer for too long.
    pub(super) fn is_overdue(&self, now_ms: u64) -> bool {
        self.overdue_ms().is_some_and(|overdue| now_ms >= overdue)
    }

    pub(super) fn overdue_ms(&self) -> Option<u64> {
        let oldest = self.writer.flights.oldest_ms();
        let write = oldest.map(|sent| sent + self.settings.acknowledge_timeout_ms);
        let fetch = self.repairs.fetch_sent_ms().map(|sent| sent + self.settings.fetch_timeout_ms);
        write.into_iter().chain(fetch).min()
    }
}
