//! Operations that were sent and are not finished.

use std::collections::BTreeMap;

use crate::message::{OperationId, Subject};

/// A write, or the read of a key after a lost race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) subject: Subject,
    /// The revision that the write expected.
    pub(crate) expected: u64,
    pub(crate) sent_ms: u64,
    pub(crate) stage: Stage,
}

/// ```text
///   Sent ──accepted──▶ Accepted ──the watch has reached the revision──▶ finished
///     └──lost race──▶ Reading ──the key was read──▶ finished
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The outcome is unknown.
    Sent,
    /// It was accepted with this revision, which the watch has not delivered.
    Accepted(u64),
    /// It lost a race, and the key is read.
    Reading,
}

/// All operations in flight on keys.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    flights: BTreeMap<OperationId, Flight>,
    sent: usize,
}

impl Flights {
    /// The number of writes without an outcome.
    pub(crate) const fn sent(&self) -> usize {
        self.sent
    }

    /// The number of all operations.
    pub(crate) fn length(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn insert(&mut self, id: OperationId, flight: Flight) {
        self.sent += usize::from(flight.stage == Stage::Sent);
        self.flights.insert(id, flight);
    }

    /// Removes a flight if it is at this kind of stage.
    pub(crate) fn remove(&mut self, id: OperationId, stage: Stage) -> Option<Flight> {
        let flight = *self.flights.get(&id)?;
        if flight.stage != stage {
            return None;
        }
        self.sent -= usize::from(stage == Stage::Sent);
        self.flights.remove(&id)
    }

    /// Removes one accepted write whose revision the watch has reached.
    pub(crate) fn pop_seen(&mut self, position: u64) -> Option<Flight> {
        let is_seen =
            |flight: &Flight| matches!(flight.stage, Stage::Accepted(at) if at <= position);
        let (&id, _) = self.flights.iter().find(|(_, flight)| is_seen(flight))?;
        self.flights.remove(&id)
    }

    /// Removes all flights.
    pub(crate) fn take_all(&mut self) -> Vec<Flight> {
        self.sent = 0;
        std::mem::take(&mut self.flights).into_values().collect()
    }

    /// When the oldest operation was sent. Operations are numbered in the order of their start.
    pub(crate) fn oldest_ms(&self) -> Option<u64> {
        self.flights.values().next().map(|flight| flight.sent_ms)
    }
}
