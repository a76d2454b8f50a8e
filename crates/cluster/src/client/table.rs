//! One table of the client: its replica, and its channels to the shard.

use std::collections::VecDeque;

use exchange::BindingChange;

use super::config::{Changes, TableConfig, Uses};
use super::machines::Machines;
use super::messages::Question;
use super::status::{MachineStatus, TableStatus};
use crate::key::{Key, Secret};
use crate::message::{Command, Event, Origin, Target};
use crate::replica::{Replica, Update};
use crate::settings::Settings;
use crate::state::State;

/// The maximum number of changes in one message to a shard: it takes less than a millisecond.
const CHANGES_MAX: usize = 1024;
/// While this many changes wait for the shard, no events are read.
const WAITING_MAX: usize = 8 * CHANGES_MAX;
/// The maximum number of batches of uses that are taken in one round.
const BATCHES_PER_ROUND: usize = 256;
/// The maximum number of steps of a walk over the table in one round.
const STEPS_PER_ROUND: usize = 16;

pub(super) struct Table {
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) replica: Replica,
    /// Changes that the server has and that were not read.
    pub(super) behind: u64,
    rejected: Option<String>,
    uses: Uses,
    changes: Changes,
    waiting: VecDeque<BindingChange>,
}

impl Table {
    pub(super) fn new(config: TableConfig, secret: Secret, origin: Origin, seed: u64) -> Self {
        let TableConfig { name, settings, uses, changes } = config;
        Self {
            name,
            settings,
            replica: Replica::new(settings, secret, origin, seed),
            behind: 0,
            rejected: None,
            uses,
            changes,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn handle(&mut self, now_ms: u64, event: Event) {
        match &event {
            Event::Rejected { reason, .. } => self.rejected = Some(reason.clone()),
            Event::Written { .. } => self.rejected = None,
            _ => {}
        }
        self.replica.handle(now_ms, event);
        self.take_updates();
    }

    /// Takes the reports of the shard.
    pub(super) fn take_uses(&mut self, now_ms: u64) {
        for _ in 0..BATCHES_PER_ROUND {
            let Ok(batch) = self.uses.try_recv() else { break };
            for used in batch {
                let before = used.before.map(Target);
                self.replica.report(now_ms, &used.key.into(), before, Target(used.target));
            }
        }
        self.take_updates();
    }

    /// Appends the commands that are due. `true`: there is more to do now.
    pub(super) fn poll(&mut self, now_ms: u64, commands: &mut Vec<Command>) -> bool {
        for _ in 0..STEPS_PER_ROUND {
            while let Some(command) = self.replica.poll(now_ms) {
                commands.push(command);
            }
            self.take_updates();
            if self.replica.next_poll_ms() != Some(0) {
                return false;
            }
        }
        true
    }

    fn take_updates(&mut self) {
        while let Some(Update { key, target }) = self.replica.poll_update() {
            let target = target.map(|target| target.0);
            self.waiting.push_back(BindingChange { key: key.shared(), target });
        }
    }

    /// Sends changes to the shard as long as it has room. `false`: too many wait.
    pub(super) fn send_changes(&mut self) -> bool {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(CHANGES_MAX);
            let batch: Vec<_> = self.waiting.drain(..count).collect();
            if let Err(batch) = (self.changes)(batch) {
                batch.into_iter().rev().for_each(|change| self.waiting.push_front(change));
                break;
            }
        }
        self.waiting.len() < WAITING_MAX
    }

    pub(super) fn is_in_sync(&self) -> bool {
        self.replica.status().state == State::InSync && self.waiting.is_empty()
    }

    pub(super) fn answer(&self, question: Question) {
        // If the asker has gone, the answer is dropped.
        match question {
            Question::Listing(shard, reply) => drop(reply.send(self.replica.listing(shard))),
            Question::Digest(reply) => drop(reply.send(self.replica.digest())),
        }
    }

    pub(super) fn status(&self, now_ms: u64, number: usize, machines: &Machines) -> TableStatus {
        let status = self.replica.status();
        let machines = machines.of_table(now_ms, number).map(|(origin, machine)| MachineStatus {
            name: machine.name.clone(),
            origin,
            heard_ms_ago: now_ms.saturating_sub(machine.heard_ms),
            revision: machine.revision,
            entries: machine.entries,
        });
        TableStatus {
            name: self.name.clone(),
            counters: *self.replica.counters(),
            behind: self.behind,
            proof_age_ms: status.proof.map(|proof| now_ms.saturating_sub(proof.at_ms)),
            rejected: self.rejected.clone(),
            machines: machines.collect(),
            status,
        }
    }
}

/// The name of a client's key, for people.
pub(super) fn key_name(key: &Key) -> String {
    key.name()
}
