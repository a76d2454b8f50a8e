//! One shared table at one daemon.

mod connection;
mod local;
mod proof;
mod remote;
mod repair;
mod writes;

use std::collections::{BTreeSet, VecDeque};

use crate::counters::Counters;
use crate::digest::Listed;
use crate::flights::Flights;
use crate::key::{Key, Secret};
use crate::message::{Command, Epoch, Event, OperationId, Origin, Target};
use crate::pending::Pending;
use crate::proofs::{Proof, Proofs};
use crate::rate::Rate;
use crate::repairs::Repairs;
use crate::settings::Settings;
use crate::shards::{Shards, listed};
use crate::state::State;
use crate::stream::Stream;
use crate::table::{Entry, Flag, Table};
use exchange::Random;

/// One shared table at one daemon: it answers requests, takes [`Event`]s and returns [`Command`]s.
///
/// All times are milliseconds of a monotonic clock of this daemon.
///
/// ```
/// use cluster::{Command, Event, Key, Origin, Replica, Secret, Settings, State, Target};
///
/// let secret = Secret(1, 2);
/// let mut replica = Replica::new(Settings::default(), secret, Origin(1), 7);
/// let client = Key::new(secret, b"192.0.2.1");
/// assert_eq!(replica.find(0, &client), None);
/// replica.bind(0, &client, Target(5));
/// assert_eq!(replica.find(1, &client), Some(Target(5)), "without any connection");
///
/// replica.handle(2, Event::Connected { epoch: None, first: 0, last: 0 });
/// assert_eq!(replica.status().state, State::CatchingUp);
/// let Some(Command::Watch { operation, from: None }) = replica.poll(2) else { panic!() };
/// replica.handle(3, Event::CaughtUp { operation, revision: 0 });
/// let writes = std::iter::from_fn(|| replica.poll(30)).count();
/// assert_eq!(writes, 2, "the epoch and the binding");
/// ```
#[derive(Debug)]
pub struct Replica {
    settings: Settings,
    origin: Origin,
    table: Table,
    shards: Shards,
    writer: Writer,
    stream: Stream,
    repairs: Repairs,
    proofs: Proofs,
    /// Targets that must not be adopted.
    down: BTreeSet<Target>,
    counters: Counters,
    source: Source,
    outbox: VecDeque<Command>,
    /// What the reader of the table has to adopt.
    updates: VecDeque<Update>,
}

/// A binding that another daemon has made, used or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The client.
    pub key: Key,
    /// Its target; `None`: it is not bound any more.
    pub target: Option<Target>,
}

/// The writes that wait and those in flight.
#[derive(Debug)]
struct Writer {
    pending: Pending,
    flights: Flights,
    rate: Rate,
    /// Entries that must be written do not wait in `pending`, because it was full.
    is_overflowed: bool,
}

/// The source of ids and random numbers.
#[derive(Debug)]
struct Source {
    random: Random,
    last: u64,
}

impl Source {
    const fn operation(&mut self) -> OperationId {
        self.last += 1;
        OperationId(self.last)
    }

    fn epoch(&mut self) -> Epoch {
        Epoch(u128::from(self.random.draw()) << 64 | u128::from(self.random.draw()))
    }
}

/// The state of a replica, for the admin API and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The state of the connection.
    pub state: State,
    /// The epoch of the bucket, if it is known.
    pub epoch: Option<Epoch>,
    /// The last revision that was read.
    pub revision: u64,
    /// The number of entries, including those that are not bound any more but whose end was not read yet.
    pub entries: usize,
    /// The number of entries that the server has, as far as this daemon knows.
    pub listed: u64,
    /// The number of keys that wait to be written.
    pub pending: usize,
    /// The number of writes without an acknowledgement.
    pub in_flight: usize,
    /// The number of shards whose digest cannot be compared now.
    pub incomplete_shards: u32,
    /// The last proof that another daemon has the same contents.
    pub proof: Option<Proof>,
}

impl Replica {
    /// Creates an empty table. `secret` is the same in all daemons of the cluster, `origin` differs. `seed` must not be
    /// predictable: epochs are made from it.
    #[must_use]
    pub fn new(settings: Settings, secret: Secret, origin: Origin, seed: u64) -> Self {
        Self {
            settings,
            origin,
            table: Table::with_capacity(settings.entries_max.max(1)),
            shards: Shards::new(secret),
            writer: Writer {
                pending: Pending::default(),
                flights: Flights::default(),
                rate: Rate::new(settings.writes_per_second),
                is_overflowed: false,
            },
            stream: Stream::new(),
            repairs: Repairs::default(),
            proofs: Proofs::default(),
            down: BTreeSet::new(),
            counters: Counters::default(),
            source: Source { random: Random::new(seed), last: 0 },
            outbox: VecDeque::new(),
            updates: VecDeque::new(),
        }
    }

    /// Returns the next change by another daemon, for a reader that has a table of its own. Call it until it returns
    /// `None`, after each event and each [`Replica::report`].
    pub fn poll_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    /// Takes what the client of the server reports.
    pub fn handle(&mut self, now_ms: u64, event: Event) {
        match event {
            Event::Connected { epoch, first, last } => self.connected(now_ms, epoch, first, last),
            Event::Disconnected => self.disconnected(now_ms),
            Event::Changed { operation, change } => self.changed(now_ms, operation, change),
            Event::CaughtUp { operation, revision } => self.caught_up(operation, revision),
            Event::Fetched { operation, revision } => self.fetched(operation, revision),
            Event::Got { operation, change } => self.got(now_ms, operation, change),
            Event::Written { operation, revision } => self.written(now_ms, operation, revision),
            Event::LostRace { operation } => self.lost_race(now_ms, operation),
            Event::Rejected { operation, .. } => self.rejected(now_ms, operation),
            Event::Digest(digest) => self.received_digest(now_ms, *digest),
        }
    }

    /// Returns the next command for the client of the server. Call it until it returns `None`, after each event, after
    /// requests, and at [`Replica::next_poll_ms`].
    pub fn poll(&mut self, now_ms: u64) -> Option<Command> {
        if self.is_overdue(now_ms) {
            self.disconnected(now_ms);
            return Some(Command::Reconnect);
        }
        self.repair(now_ms);
        self.write_mark(now_ms);
        self.outbox.pop_front().or_else(|| self.flush(now_ms))
    }

    /// When [`Replica::poll`] has something to do next, if nothing happens until then.
    #[must_use]
    pub fn next_poll_ms(&self) -> Option<u64> {
        if !self.outbox.is_empty() || self.has_repairs() {
            return Some(0);
        }
        let times = [self.overdue_ms(), self.mark_due_ms(), self.flush_due_ms()];
        times.into_iter().flatten().min()
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The current state.
    #[must_use]
    pub fn status(&self) -> Status {
        let digests = self.shards.digests().iter();
        Status {
            state: self.stream.state,
            epoch: self.stream.mark.epoch,
            revision: self.stream.position,
            entries: self.table.length(),
            listed: digests.map(|digest| u64::from(digest.entries)).sum(),
            pending: self.writer.pending.length(),
            in_flight: self.writer.flights.sent(),
            incomplete_shards: self.shards.incomplete(self.stream.position).length(),
            proof: self.proofs.last(),
        }
    }

    /// Returns the entries of a shard as the server has them, sorted by key: for
    /// [`differences`](crate::differences). It examines the whole table.
    #[must_use]
    pub fn listing(&self, shard: u8) -> Vec<Listed> {
        let of_shard = |entry: &&Entry| {
            entry.key.shard() == shard && entry.is(Flag::Listed) && self.shards.is_seen(entry)
        };
        let mut list: Vec<_> = self.table.iter().filter(of_shard).map(listed).collect();
        list.sort_unstable();
        list
    }

    /// Checks every invariant. It examines all entries.
    pub fn check(&self) {
        self.table.check();
        let room = self.settings.entries_max.max(1) as usize;
        assert!(self.table.length() <= room, "never over the limit");
        assert!(self.writer.pending.length() <= self.settings.pending_max, "a bounded queue");
        assert!(self.writer.flights.sent() <= self.settings.unacknowledged_max + 1, "a window");
        let Counters { written, acknowledged, lost_races, rejected, unknown, .. } = self.counters;
        let ended =
            acknowledged + lost_races + rejected + unknown + self.writer.flights.sent() as u64;
        assert_eq!(written, ended, "every write has one outcome");
        let mut entries = 0;
        for entry in self.table.iter() {
            let is_listed = entry.is(Flag::Listed) && self.shards.is_seen(entry);
            entries += u64::from(is_listed);
            let agrees = entry.target == entry.shared || entry.is(Flag::Removed);
            let is_changed = entry.is(Flag::Dirty) || !entry.is(Flag::Listed);
            assert!(agrees || is_changed, "the local target differs only until it is written");
        }
        assert_eq!(entries, self.status().listed, "digests count what is listed");
    }
}
