//! The settings of operators as one daemon knows them.

use std::collections::{BTreeMap, VecDeque};

use super::entry::{Author, Entry, Setting};
use super::key::OperatorKey;
use super::messages::{History, OperatorCommand, OperatorEvent, OperatorUpdate, Stored};
use super::request::{CommandError, CommandId, CommandRequest, Pending, Stage};
use crate::message::OperationId;
use crate::state::State;

/// How often a command is written again after another daemon was faster.
const RETRIES_MAX: u32 = 3;
/// The maximum time until a command is stored, in milliseconds.
const COMMAND_TIMEOUT_MS: u64 = 2000;
/// The maximum number of commands that wait.
const COMMANDS_MAX: usize = 64;
/// The time after which an entry of a lost history is written again, if the server did not store it.
const RETRY_MS: u64 = 1000;

/// Counters since the start of the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorCounters {
    /// Commands of this daemon that were stored.
    pub stored: u64,
    /// Commands of this daemon that were not stored, or whose outcome is unknown.
    pub failed: u64,
    /// Writes that were rejected because another daemon had written the key first.
    pub conflicts: u64,
    /// Changes that were ignored because a newer one was known.
    pub stale: u64,
    /// Values that this version cannot read.
    pub unreadable: u64,
    /// Connections on which the history of the bucket was found to be lost.
    pub histories_lost: u64,
    /// Entries that this daemon wrote again after that.
    pub restored: u64,
}

/// The last known value of a key.
#[derive(Debug)]
struct Held {
    /// The revision; 0: the key does not exist in the current history.
    revision: u64,
    stored: Stored,
    /// It is of a lost history and must be written again.
    is_lost: bool,
}

/// The settings of operators at one daemon: it takes [`OperatorEvent`]s and commands, and returns [`OperatorCommand`]s
/// and [`OperatorUpdate`]s.
///
/// All times are milliseconds of a monotonic clock of this daemon.
#[derive(Debug)]
pub struct OperatorReplica {
    state: State,
    history: Option<History>,
    /// The history was lost, and its end was not read yet.
    is_history_lost: bool,
    /// The last revision that was read.
    position: u64,
    watch: Option<OperationId>,
    entries: BTreeMap<OperatorKey, Held>,
    /// What the watch has delivered before it caught up.
    snapshot: BTreeMap<OperatorKey, (u64, Stored)>,
    commands: BTreeMap<CommandId, Pending>,
    /// Reads and writes of entries of a lost history.
    repairs: BTreeMap<OperationId, OperatorKey>,
    repair_due_ms: u64,
    last_id: u64,
    outbox: VecDeque<OperatorCommand>,
    updates: VecDeque<OperatorUpdate>,
    counters: OperatorCounters,
}

impl Default for OperatorReplica {
    fn default() -> Self {
        Self {
            state: State::Connecting,
            history: None,
            is_history_lost: false,
            position: 0,
            watch: None,
            entries: BTreeMap::new(),
            snapshot: BTreeMap::new(),
            commands: BTreeMap::new(),
            repairs: BTreeMap::new(),
            repair_due_ms: 0,
            last_id: 0,
            outbox: VecDeque::new(),
            updates: VecDeque::new(),
            counters: OperatorCounters::default(),
        }
    }
}

impl OperatorReplica {
    /// Takes a command of an operator. An [`OperatorUpdate`] with the returned id is its answer.
    pub fn ask(&mut self, now_ms: u64, request: CommandRequest) -> CommandId {
        self.last_id += 1;
        let id = CommandId(self.last_id);
        if self.commands.len() >= COMMANDS_MAX {
            self.fail(id, CommandError::Busy);
            return id;
        }
        let pending = Pending {
            request,
            deadline_ms: now_ms + COMMAND_TIMEOUT_MS,
            stage: Stage::Waiting,
            lost_races: 0,
            sent: None,
            is_unknown: false,
        };
        self.commands.insert(id, pending);
        id
    }

    /// Takes what the client of the server reports.
    pub fn handle(&mut self, now_ms: u64, event: OperatorEvent) {
        match event {
            OperatorEvent::Connected { history, last } => self.connected(history, last),
            OperatorEvent::Disconnected => self.disconnected(),
            OperatorEvent::Changed { operation, key, revision, stored } => {
                if self.watch == Some(operation) {
                    self.changed(key, revision, stored);
                }
            }
            OperatorEvent::CaughtUp { operation, revision } => {
                if self.watch == Some(operation) && self.state == State::CatchingUp {
                    self.caught_up(revision);
                }
            }
            OperatorEvent::Got { operation, found } => self.got(operation, found),
            OperatorEvent::Written { operation, revision } => self.written(operation, revision),
            OperatorEvent::LostRace { operation } => self.lost_race(operation),
            OperatorEvent::Rejected { operation, reason } => {
                if let Some(id) = self.command_of(operation) {
                    let is_unknown = self.commands[&id].is_unknown;
                    let rejected = CommandError::Rejected(reason);
                    self.fail(id, if is_unknown { CommandError::Unknown } else { rejected });
                }
                self.end_repair(now_ms, operation);
            }
            OperatorEvent::Unanswered { operation } => {
                if let Some(id) = self.command_of(operation) {
                    self.interrupt(id);
                }
                self.end_repair(now_ms, operation);
            }
        }
    }

    /// Returns the next command for the client of the server. Call it until it returns `None`, after each event, after
    /// [`OperatorReplica::ask`], and at [`OperatorReplica::next_poll_ms`].
    pub fn poll(&mut self, now_ms: u64) -> Option<OperatorCommand> {
        let overdue = |(id, pending): (&CommandId, &Pending)| {
            (pending.deadline_ms <= now_ms).then(|| (*id, pending.overdue_error()))
        };
        let overdue: Vec<_> = self.commands.iter().filter_map(overdue).collect();
        for (id, error) in overdue {
            self.fail(id, error);
        }
        if self.state == State::InSync {
            self.write_commands();
            self.write_lost(now_ms);
        }
        self.outbox.pop_front()
    }

    /// When [`OperatorReplica::poll`] has something to do next, if nothing happens until then.
    #[must_use]
    pub fn next_poll_ms(&self) -> Option<u64> {
        let deadline = self.commands.values().map(|pending| pending.deadline_ms).min();
        let has_lost = self.state == State::InSync && self.entries.values().any(|it| it.is_lost);
        let repair = has_lost.then_some(self.repair_due_ms);
        deadline.into_iter().chain(repair).min()
    }

    /// Returns the next update for the daemon. Call it until it returns `None`, after each event and each poll.
    pub fn poll_update(&mut self) -> Option<OperatorUpdate> {
        self.updates.pop_front()
    }

    /// The state of the connection. After the first catch-up, everything that is stored was read.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The last revision that was read.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.position
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &OperatorCounters {
        &self.counters
    }

    /// Every key that has a value, with its revision.
    pub fn entries(&self) -> impl Iterator<Item = (&OperatorKey, &Entry, u64)> {
        self.entries.iter().filter_map(|(key, held)| match &held.stored {
            Stored::Put(entry) => Some((key, entry, held.revision)),
            Stored::Unreadable | Stored::Deleted => None,
        })
    }

    fn operation(&mut self) -> OperationId {
        self.last_id += 1;
        OperationId(self.last_id)
    }

    fn connected(&mut self, history: History, last: u64) {
        self.disconnected();
        let is_other = self.history.is_some_and(|known| known != history);
        self.is_history_lost |= is_other || last < self.position;
        self.history = Some(history);
        let operation = self.operation();
        self.watch = Some(operation);
        self.state = State::CatchingUp;
        self.outbox.push_back(OperatorCommand::Watch { operation });
    }

    fn disconnected(&mut self) {
        if self.watch.take().is_none() {
            return;
        }
        self.state = State::Detached;
        self.snapshot.clear();
        self.repairs.clear();
        self.repair_due_ms = 0;
        self.outbox.clear();
        let sent = self.commands.iter().filter(|(_, pending)| pending.operation().is_some());
        let sent: Vec<_> = sent.map(|(id, _)| *id).collect();
        sent.into_iter().for_each(|id| self.interrupt(id));
    }

    /// There will be no answer to the operation of a command. It waits again.
    fn interrupt(&mut self, id: CommandId) {
        if let Some(pending) = self.commands.get_mut(&id) {
            pending.is_unknown |= matches!(pending.stage, Stage::Writing(_));
            pending.stage = Stage::Waiting;
        }
    }

    fn changed(&mut self, key: OperatorKey, revision: u64, stored: Stored) {
        if self.state != State::InSync {
            self.snapshot.insert(key, (revision, stored));
            return;
        }
        self.position = self.position.max(revision);
        if revision <= self.revision_of(&key) {
            self.counters.stale += 1;
            return;
        }
        self.adopt(key, revision, stored);
    }

    fn revision_of(&self, key: &OperatorKey) -> u64 {
        self.entries.get(key).map_or(0, |held| held.revision)
    }

    /// All keys were read.
    fn caught_up(&mut self, revision: u64) {
        let found = std::mem::take(&mut self.snapshot);
        let is_older = |(key, held): (&OperatorKey, &Held)| {
            !held.is_lost && held.revision > found.get(key).map_or(0, |it| it.0)
        };
        let is_lost = std::mem::take(&mut self.is_history_lost);
        if is_lost || self.entries.iter().any(is_older) {
            self.counters.histories_lost += 1;
            self.position = 0;
            self.entries.retain(|_, held| {
                held.is_lost = matches!(held.stored, Stored::Put(_));
                held.revision = 0;
                held.is_lost
            });
        }
        let last = found.values().map(|(revision, _)| *revision).max();
        self.position = self.position.max(revision).max(last.unwrap_or(0));
        self.state = State::InSync;
        for (key, (revision, stored)) in found {
            self.compare(key, revision, stored);
        }
    }

    /// Decides between what is held and what was read.
    fn compare(&mut self, key: OperatorKey, revision: u64, stored: Stored) {
        match self.entries.get_mut(&key) {
            Some(held) if held.is_lost && is_older(&stored, &held.stored) => {
                held.revision = revision;
            }
            Some(held) if !held.is_lost && revision <= held.revision => {}
            _ => self.adopt(key, revision, stored),
        }
    }

    fn adopt(&mut self, key: OperatorKey, revision: u64, stored: Stored) {
        let held = Held { revision, stored: stored.clone(), is_lost: false };
        let before = self.entries.insert(key.clone(), held).map(|held| held.stored);
        let is_done = |pending: &Pending| {
            let is_accepted = matches!(pending.stage, Stage::Accepted(at) if at <= revision);
            let is_own = pending.sent.as_ref().is_some_and(|sent| stored.is(sent));
            pending.request.key == key && (is_accepted || is_own)
        };
        let done = self.commands.iter().filter(|(_, pending)| is_done(pending));
        let commands: Vec<_> = done.map(|(id, _)| *id).collect();
        for id in &commands {
            self.commands.remove(id);
            self.counters.stored += 1;
        }
        let (setting, author) = match stored {
            Stored::Put(entry) => (entry.setting, Some(entry.author)),
            Stored::Deleted => (Setting::default_of(&key), None),
            Stored::Unreadable => return self.counters.unreadable += 1,
        };
        if !commands.is_empty() || !is_same(before.as_ref(), &setting, author.as_ref()) {
            self.updates.push_back(OperatorUpdate::Apply { key, setting, author, commands });
        }
    }

    fn fail(&mut self, command: CommandId, error: CommandError) {
        self.commands.remove(&command);
        self.counters.failed += 1;
        self.updates.push_back(OperatorUpdate::Failed { command, error });
    }

    /// Whether a read or a write of this key has no answer yet.
    fn is_busy(&self, key: &OperatorKey) -> bool {
        let of_command =
            |it: &Pending| it.request.key == *key && !matches!(it.stage, Stage::Waiting);
        self.repairs.values().any(|it| it == key) || self.commands.values().any(of_command)
    }

    fn write_commands(&mut self) {
        let waiting = self.commands.iter().filter(|(_, it)| it.stage == Stage::Waiting);
        let waiting: Vec<_> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            let CommandRequest { key, change, author } = self.commands[&id].request.clone();
            if self.is_busy(&key) {
                continue;
            }
            let (setting, expect) = match self.entries.get(&key) {
                None => (Setting::default_of(&key), 0),
                Some(Held { stored: Stored::Unreadable, .. }) => {
                    self.fail(id, CommandError::Unreadable);
                    continue;
                }
                Some(Held { stored: Stored::Put(entry), revision, .. }) => {
                    (entry.setting, *revision)
                }
                Some(Held { stored: Stored::Deleted, revision, .. }) => {
                    (Setting::default_of(&key), *revision)
                }
            };
            let entry = Entry { setting: change.applied_to(setting), author };
            let operation = self.operation();
            let pending = self.commands.get_mut(&id).expect("it waits");
            pending.stage = Stage::Writing(operation);
            pending.sent = Some(entry.clone());
            self.outbox.push_back(OperatorCommand::Write { operation, key, entry, expect });
        }
    }

    /// Writes the entries of a lost history again.
    fn write_lost(&mut self, now_ms: u64) {
        if now_ms < self.repair_due_ms {
            return;
        }
        let lost = self.entries.iter().filter(|(key, it)| it.is_lost && !self.is_busy(key));
        let lost: Vec<_> = lost
            .filter_map(|(key, held)| match &held.stored {
                Stored::Put(entry) => Some((key.clone(), entry.clone(), held.revision)),
                Stored::Unreadable | Stored::Deleted => None,
            })
            .collect();
        for (key, entry, expect) in lost {
            let operation = self.operation();
            self.repairs.insert(operation, key.clone());
            self.outbox.push_back(OperatorCommand::Write { operation, key, entry, expect });
        }
    }

    fn command_of(&self, operation: OperationId) -> Option<CommandId> {
        let found = self.commands.iter().find(|(_, it)| it.operation() == Some(operation));
        found.map(|(id, _)| *id)
    }

    /// A write of an entry of a lost history was not stored. It is repeated later.
    fn end_repair(&mut self, now_ms: u64, operation: OperationId) {
        if self.repairs.remove(&operation).is_some() {
            self.repair_due_ms = now_ms + RETRY_MS;
        }
    }

    fn written(&mut self, operation: OperationId, revision: u64) {
        if let Some(key) = self.repairs.remove(&operation) {
            if let Some(held) = self.entries.get_mut(&key).filter(|held| held.is_lost) {
                (held.revision, held.is_lost) = (revision, false);
                self.counters.restored += 1;
            }
        } else if let Some(id) = self.command_of(operation) {
            // A write that was delivered before its answer has ended its command.
            let pending = self.commands.get_mut(&id).expect("it was found");
            pending.stage = Stage::Accepted(revision);
        }
    }

    fn lost_race(&mut self, operation: OperationId) {
        if let Some(key) = self.repairs.remove(&operation) {
            let operation = self.operation();
            self.repairs.insert(operation, key.clone());
            self.outbox.push_back(OperatorCommand::Get { operation, key });
        } else if let Some(id) = self.command_of(operation) {
            self.command_lost_race(id);
        }
    }

    fn command_lost_race(&mut self, id: CommandId) {
        self.counters.conflicts += 1;
        let operation = self.operation();
        let pending = self.commands.get_mut(&id).expect("it was found");
        pending.lost_races += 1;
        if pending.lost_races > RETRIES_MAX {
            let is_unknown = pending.is_unknown;
            let error = if is_unknown { CommandError::Unknown } else { CommandError::Conflict };
            return self.fail(id, error);
        }
        pending.stage = Stage::Reading(operation);
        let key = pending.request.key.clone();
        self.outbox.push_back(OperatorCommand::Get { operation, key });
    }

    fn got(&mut self, operation: OperationId, found: Option<(u64, Stored)>) {
        let key = if let Some(key) = self.repairs.remove(&operation) {
            key
        } else if let Some(id) = self.command_of(operation) {
            let pending = self.commands.get_mut(&id).expect("it was found");
            pending.stage = Stage::Waiting;
            pending.request.key.clone()
        } else {
            return;
        };
        match found {
            Some((revision, stored)) => self.compare(key, revision, stored),
            // The next write creates it.
            None => {
                if let Some(held) = self.entries.get_mut(&key) {
                    held.revision = 0;
                }
            }
        }
    }
}

impl Pending {
    /// Why a command ends when its time is over.
    const fn overdue_error(&self) -> CommandError {
        match self.stage {
            Stage::Accepted(_) => CommandError::Late,
            Stage::Writing(_) => CommandError::Unknown,
            Stage::Waiting | Stage::Reading(_) if self.is_unknown => CommandError::Unknown,
            Stage::Waiting | Stage::Reading(_) => CommandError::Unreachable,
        }
    }
}

impl Stored {
    fn is(&self, entry: &Entry) -> bool {
        matches!(self, Self::Put(stored) if stored == entry)
    }
}

/// Whether a value that was read in a new history is older than the one of a lost history. A marker has no date: a
/// backup can contain it.
fn is_older(found: &Stored, held: &Stored) -> bool {
    match (found, held) {
        (Stored::Put(found), Stored::Put(held)) => found.author.when < held.author.when,
        (Stored::Deleted, _) => true,
        _ => false,
    }
}

/// Whether a value changes nothing.
fn is_same(before: Option<&Stored>, setting: &Setting, author: Option<&Author>) -> bool {
    match before {
        Some(Stored::Put(entry)) => entry.setting == *setting && Some(&entry.author) == author,
        Some(Stored::Deleted) => setting.is_default() && author.is_none(),
        Some(Stored::Unreadable) => false,
        // A new daemon does not apply what applies without any command.
        None => setting.is_default(),
    }
}
