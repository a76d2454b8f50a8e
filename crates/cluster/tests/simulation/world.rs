//! Three daemons, a bucket, and the network between them, in virtual time.
//!
//! A world has a time of faults and then a quiet time, in which all faults are healed and clients go on.

mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cluster::{
    Change, ChangeKind, Command, Digest, Event, Key, Origin, Replica, Secret, Settings, Subject,
    Target, Value,
};

use crate::bucket::{Bucket, Contents};
use crate::chance::Chance;
use crate::daemon::{Daemon, Order};

pub(crate) const DAEMONS: usize = 3;
/// Clients that use any daemon.
pub(crate) const CLIENTS: usize = 20;
/// Clients that use the first daemon only, until they are unbound.
pub(crate) const UNBOUND: usize = 4;
/// Clients that come in the quiet time, to two daemons at once.
pub(crate) const LATE: usize = 6;
const TARGETS: u64 = 5;
const SECRET: Secret = Secret(11, 12);

#[derive(Debug)]
enum Item {
    ToBucket { daemon: usize, connection: u32, generation: u32, command: Command },
    ToDaemon { daemon: usize, connection: u32, order: Order, event: Event },
    Poll { daemon: usize },
    Connect { daemon: usize },
    Lost { daemon: usize, connection: u32 },
    Wake { daemon: usize },
    Rejoin { daemon: usize },
    Traffic,
    Fault,
    Expire,
    Late { client: usize },
    SetDown { daemon: usize, target: Target, is_down: bool },
}

/// What differs between worlds besides the order of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) faults_ms: u64,
    pub(crate) quiet_ms: u64,
    /// The tables have no room for all clients.
    pub(crate) is_small: bool,
    /// Requests are decided by a table of their own, which reads the replica.
    pub(crate) has_reader: bool,
}

impl Plan {
    fn new(chance: &mut Chance) -> Self {
        let is_long = chance.in_1000(650);
        let is_small = chance.in_1000(100);
        let (lifetime_ms, mark_ms) = if is_long { (120_000, 3000) } else { (20_000, 1000) };
        let settings = Settings {
            lifetime_ms,
            mark_ms,
            entries_max: if is_small { 15 } else { 100 },
            flush_keys: 8,
            unacknowledged_max: 16,
            writes_per_second: chance.between(50, 5000),
            pending_max: if chance.in_1000(200) { 6 } else { 100 },
            ..Settings::default()
        };
        let quiet_ms = if is_long { 25_000 } else { 16_000 };
        let faults_ms = chance.between(60_000, 160_000);
        Self { settings, faults_ms, quiet_ms, is_small, has_reader: chance.in_1000(400) }
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: u64,
    number: u64,
    items: BTreeMap<(u64, u64), Item>,
    chance: Chance,
    pub(crate) plan: Plan,
    pub(crate) bucket: Bucket,
    copies: Vec<Contents>,
    watchers: Vec<(usize, u32, cluster::OperationId)>,
    pub(crate) daemons: Vec<Daemon>,
    /// The orders of messages that broke off with their connection.
    broken: BTreeSet<(usize, u32, Order)>,
    /// All targets that each client was ever bound to.
    bound: BTreeMap<Key, BTreeSet<Target>>,
    /// Clients with a message that was damaged on its way.
    damaged: BTreeSet<Key>,
    pub(crate) unbound: BTreeSet<Key>,
    /// The contents of the bucket, or its clock, were replaced.
    pub(crate) is_replaced: bool,
    /// The last digests by revision.
    digests: BTreeMap<u64, Vec<Digest>>,
    pub(crate) violations: Vec<String>,
    pub(crate) log: Option<String>,
}

pub(crate) fn client(number: usize) -> Key {
    Key::new(SECRET, &number.to_le_bytes())
}

impl World {
    pub(crate) fn new(seed: u64, is_logged: bool) -> Self {
        let mut chance = Chance::new(seed);
        let plan = Plan::new(&mut chance);
        let daemons = (0..DAEMONS as u64).map(|number| {
            let replica = Replica::new(plan.settings, SECRET, Origin(number), seed * 1000 + number);
            Daemon::new(replica, chance.between(0, 1 << 40))
        });
        let mut world = Self {
            now: 0,
            number: 0,
            items: BTreeMap::new(),
            plan,
            bucket: Bucket::new(plan.settings.max_age_ms()),
            copies: Vec::new(),
            watchers: Vec::new(),
            daemons: daemons.collect(),
            chance,
            broken: BTreeSet::new(),
            bound: BTreeMap::new(),
            damaged: BTreeSet::new(),
            unbound: BTreeSet::new(),
            is_replaced: false,
            digests: BTreeMap::new(),
            violations: Vec::new(),
            log: is_logged.then(String::new),
        };
        for daemon in 0..DAEMONS {
            let at = world.chance.between(0, 3000);
            world.schedule_connect(daemon, at);
        }
        world.schedule(0, Item::Traffic);
        world.schedule(2000, Item::Fault);
        world.schedule(500, Item::Expire);
        for client in 0..LATE {
            let after = world.chance.between(100, 3000);
            world.schedule(plan.faults_ms + after, Item::Late { client });
        }
        world
    }

    pub(crate) fn run(&mut self) {
        let mut is_healed = false;
        while let Some(((at, number), item)) = self.items.pop_first() {
            if at >= self.plan.faults_ms && !is_healed {
                is_healed = true;
                self.items.insert((at, number), item);
                self.now = self.plan.faults_ms;
                self.heal();
                continue;
            }
            if at >= self.plan.faults_ms + self.plan.quiet_ms {
                return;
            }
            self.now = at;
            self.step(item);
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.now >= self.plan.faults_ms
    }

    /// The clock of a daemon.
    pub(crate) fn clock(&self, daemon: usize) -> u64 {
        self.daemons[daemon].clock_ms + self.now
    }

    fn schedule(&mut self, at: u64, item: Item) {
        self.number += 1;
        self.items.insert((at, self.number), item);
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            writeln!(log, "{:>9} {}", self.now, line()).unwrap();
        }
    }

    fn violation(&mut self, text: String) {
        self.note(|| format!("VIOLATION {text}"));
        self.violations.push(format!("at {} ms: {text}", self.now));
    }

    fn step(&mut self, item: Item) {
        match item {
            Item::ToBucket { daemon, connection, generation, command } => {
                let is_late = self.daemons[daemon].connection != Some(connection);
                if generation == self.bucket.generation && (!is_late || self.chance.in_1000(500)) {
                    self.serve(daemon, connection, command);
                }
            }
            Item::ToDaemon { daemon, connection, order, event } => {
                if self.arrives(daemon, connection, order, &event) {
                    self.deliver(daemon, event);
                }
            }
            Item::Poll { daemon } => {
                self.daemons[daemon].poll_at = None;
                self.poll(daemon);
            }
            Item::Connect { daemon } => self.connect(daemon),
            Item::Lost { daemon, connection } => {
                if self.daemons[daemon].connections == connection {
                    self.deliver(daemon, Event::Disconnected);
                    let at = self.now + self.chance.between(100, 2000);
                    self.schedule_connect(daemon, at);
                }
            }
            Item::Wake { daemon } => self.wake(daemon),
            Item::Rejoin { daemon } => self.daemons[daemon].is_cut = false,
            Item::Traffic => self.traffic(),
            Item::Fault => self.fault(),
            Item::Expire => {
                for change in self.bucket.expire(self.now) {
                    self.broadcast(change);
                }
                self.schedule(self.now + 500, Item::Expire);
            }
            Item::Late { client } => self.late(client),
            Item::SetDown { daemon, target, is_down } => self.set_down(daemon, target, is_down),
        }
    }

    // Connections

    fn schedule_connect(&mut self, daemon: usize, at: u64) {
        if !std::mem::replace(&mut self.daemons[daemon].is_connecting, true) {
            self.schedule(at, Item::Connect { daemon });
        }
    }

    fn connect(&mut self, number: usize) {
        let daemon = &mut self.daemons[number];
        daemon.is_connecting = false;
        if daemon.is_cut || daemon.is_paused {
            let at = self.now + self.chance.between(100, 1000);
            return self.schedule_connect(number, at);
        }
        daemon.connections += 1;
        daemon.connection = Some(daemon.connections);
        daemon.arrivals.clear();
        let (epoch, first, last) =
            (self.bucket.epoch(), self.bucket.first(), self.bucket.contents.last);
        self.send(number, Order::Answers, Event::Connected { epoch, first, last });
    }

    /// The connection breaks. The daemon notices it later.
    fn lose(&mut self, daemon: usize) {
        if let Some(connection) = self.daemons[daemon].connection.take() {
            self.watchers.retain(|watcher| watcher.0 != daemon);
            let at = self.now + self.chance.between(1, 3000);
            self.schedule(at, Item::Lost { daemon, connection });
        }
    }

    /// Sends a message to a daemon on its current connection.
    fn send(&mut self, daemon: usize, order: Order, event: Event) {
        let Some(connection) = self.daemons[daemon].connection else { return };
        let mut delay = self.chance.between(1, 15);
        if !self.is_quiet() && self.chance.in_1000(10) {
            delay += self.chance.between(50, 2500);
        }
        let arrival = self.daemons[daemon].arrivals.entry(order).or_default();
        *arrival = (self.now + delay).max(*arrival);
        let at = *arrival;
        if !matches!(event, Event::Connected { .. }) && self.chance.in_1000(30) {
            let again = at + self.chance.between(1, 1000);
            let event = event.clone();
            self.schedule(again, Item::ToDaemon { daemon, connection, order, event });
        }
        self.schedule(at, Item::ToDaemon { daemon, connection, order, event });
    }

    /// Whether a message arrives, perhaps after its connection broke. What breaks off has no gaps: of messages that are
    /// in order, none arrives after one that did not.
    fn arrives(&mut self, daemon: usize, connection: u32, order: Order, event: &Event) -> bool {
        if self.daemons[daemon].connection == Some(connection) {
            return true;
        }
        let is_connect = matches!(event, Event::Connected { .. });
        let is_lost = is_connect || !self.chance.in_1000(500);
        let broken = (daemon, connection, order);
        if is_lost {
            self.broken.insert(broken);
        }
        !self.broken.contains(&broken)
    }

    fn deliver(&mut self, daemon: usize, event: Event) {
        if self.daemons[daemon].is_paused {
            return self.daemons[daemon].held.push(event);
        }
        self.note(|| format!("{daemon} <- {}", shown(&event)));
        let clock = self.clock(daemon);
        self.daemons[daemon].replica.handle(clock, event);
        self.poll(daemon);
    }

    fn poll(&mut self, number: usize) {
        if self.daemons[number].is_paused {
            return;
        }
        let clock = self.clock(number);
        let daemon = &mut self.daemons[number];
        while let Some(update) = daemon.replica.poll_update() {
            daemon.reader.adopt(clock, update);
        }
        while let Some(command) = self.daemons[number].replica.poll(clock) {
            self.note(|| format!("{number} -> {}", shown(&command)));
            if command == Command::Reconnect {
                self.daemons[number].connection = None;
                self.watchers.retain(|watcher| watcher.0 != number);
                let at = self.now + self.chance.between(100, 2000);
                self.schedule_connect(number, at);
            } else if let Some(connection) = self.daemons[number].connection {
                // All commands of a connection arrive in order.
                let generation = self.bucket.generation;
                let item = Item::ToBucket { daemon: number, connection, generation, command };
                self.schedule(self.now + 3, item);
            }
        }
        let daemon = &mut self.daemons[number];
        if let Some(next) = daemon.replica.next_poll_ms() {
            let at = next.saturating_sub(daemon.clock_ms).max(self.now + 1);
            if daemon.poll_at.is_none_or(|other| other > at) {
                daemon.poll_at = Some(at);
                self.schedule(at, Item::Poll { daemon: number });
            }
        }
    }

    // The server

    fn serve(&mut self, daemon: usize, connection: u32, command: Command) {
        match command {
            Command::Watch { operation, from } => {
                self.watchers.retain(|watcher| watcher.0 != daemon);
                for change in self.bucket.changes(from.unwrap_or(0)) {
                    self.send(daemon, Order::Read(operation), Event::Changed { operation, change });
                }
                let revision = self.bucket.contents.last;
                let event = Event::CaughtUp { operation, revision };
                self.send(daemon, Order::Read(operation), event);
                self.watchers.push((daemon, connection, operation));
            }
            Command::Fetch { operation, shard } => {
                for change in self.bucket.changes(0) {
                    if matches!(change.subject, Subject::Client(key) if key.shard() == shard) {
                        let event = Event::Changed { operation, change };
                        self.send(daemon, Order::Read(operation), event);
                    }
                }
                let revision = self.bucket.contents.last;
                let event = Event::Fetched { operation, revision };
                self.send(daemon, Order::Read(operation), event);
            }
            Command::Get { operation, subject } => {
                let change = self.bucket.read(subject);
                self.send(daemon, Order::Answers, Event::Got { operation, change });
            }
            Command::Write { operation, subject, value, expect } => {
                let change = self.bucket.write(self.now, subject, value, expect);
                let event = match change {
                    Some(change) => Event::Written { operation, revision: change.revision },
                    None => Event::LostRace { operation },
                };
                self.send(daemon, Order::Answers, event);
                if let Some(change) = change {
                    self.broadcast(change);
                }
            }
            Command::PublishDigest(digest) => {
                self.note_digest(&digest);
                for other in (0..DAEMONS).filter(|&other| other != daemon) {
                    if !self.chance.in_1000(50) {
                        self.send(other, Order::Digests, Event::Digest(digest.clone()));
                    }
                }
            }
            Command::Reconnect => {}
        }
    }

    fn broadcast(&mut self, change: Change) {
        for (daemon, connection, operation) in self.watchers.clone() {
            if self.daemons[daemon].connection == Some(connection) {
                let change = self.damage(change);
                self.send(daemon, Order::Read(operation), Event::Changed { operation, change });
            }
        }
    }

    /// Flips the target in few messages to one daemon, as a defect of memory would.
    fn damage(&mut self, mut change: Change) -> Change {
        if let (Subject::Client(key), ChangeKind::Put(Value::Binding { target, origin })) =
            (change.subject, change.kind)
            && !self.is_quiet()
            && !self.plan.is_small
            && self.now + 5000 > self.plan.faults_ms
            && !self.damaged.contains(&key)
            && self.chance.in_1000(60)
        {
            self.damaged.insert(key);
            let target = Target((target.0 + 1) % TARGETS);
            change.kind = ChangeKind::Put(Value::Binding { target, origin });
        }
        change
    }

    /// Digests of the same revision in the quiet time must become equal.
    fn note_digest(&mut self, digest: &Digest) {
        let settle_ms = self.plan.quiet_ms * 3 / 5;
        if self.now < self.plan.faults_ms + settle_ms {
            return;
        }
        let others = self.digests.entry(digest.revision).or_default();
        let differs = |other: &&Digest| {
            other.is_comparable(digest)
                && (0..=u8::MAX).any(|shard| {
                    let both = other.shard(shard).zip(digest.shard(shard));
                    both.is_some_and(|(one, two)| one != two)
                })
        };
        let differing = others.iter().find(differs).map(|other| other.origin);
        others.push(digest.clone());
        if let Some(other) = differing {
            let text = format!("digests of {:?} and {other:?} differ", digest.origin);
            self.violation(text);
        }
    }

    // Requests

    fn traffic(&mut self) {
        let (number, daemon) = if self.chance.in_1000(80) {
            (CLIENTS + self.chance.below(UNBOUND), 0)
        } else {
            let number = self.chance.below(CLIENTS);
            // Most clients stay with one daemon for some time.
            let own = (number + usize::try_from(self.now / 70_000).unwrap()) % DAEMONS;
            let any = self.chance.below(DAEMONS);
            (number, if self.chance.in_1000(850) { own } else { any })
        };
        if !self.unbound.contains(&client(number)) {
            self.request(daemon, client(number));
        }
        let end = self.plan.faults_ms + self.plan.quiet_ms - 3000;
        let next = self.now + self.chance.between(20, 150);
        if next < end {
            self.schedule(next, Item::Traffic);
        }
    }

    /// A client that is bound by two daemons at the same time.
    fn late(&mut self, number: usize) {
        let key = client(CLIENTS + UNBOUND + number);
        let first = self.chance.below(DAEMONS);
        self.request(first, key);
        self.request((first + 1) % DAEMONS, key);
    }

    fn request(&mut self, number: usize, key: Key) {
        if self.daemons[number].is_paused {
            return;
        }
        let clock = self.clock(number);
        let lifetime_ms = self.plan.settings.lifetime_ms;
        let found = match self.plan.has_reader {
            true => self.daemons[number].reader.find(clock, &key, lifetime_ms),
            false => self.daemons[number].replica.find(clock, &key),
        };
        if let Some(target) = found
            && !self.bound.get(&key).is_some_and(|all| all.contains(&target))
            && !self.damaged.contains(&key)
        {
            self.violation(format!("{number}: {key:?} has {target:?}, to which nobody bound it"));
        }
        let last = self.daemons[number].uses.insert(key, clock);
        let is_live = last.is_some_and(|last| clock < last + self.plan.settings.lifetime_ms);
        if found.is_none() && is_live && !self.plan.is_small {
            self.violation(format!("{number}: the binding of {key:?} was lost while in use"));
        }
        let down = self.daemons[number].down.clone();
        if found.is_none_or(|target| down.contains(&target)) {
            let mut target = Target(self.chance.next() % TARGETS);
            while down.contains(&target) {
                target = Target(self.chance.next() % TARGETS);
            }
            self.note(|| format!("{number} binds {} to {target:?} ({found:?})", key.name()));
            self.bound.entry(key).or_default().insert(target);
            if self.plan.has_reader {
                return self.report(number, clock, key, target);
            }
            self.daemons[number].replica.bind(clock, &key, target);
            let bound = self.daemons[number].replica.find(clock, &key);
            if bound != Some(target) {
                self.violation(format!("{number}: {key:?} has {bound:?} after a binding"));
            }
        } else if let (true, Some(target)) = (self.plan.has_reader, found) {
            return self.report(number, clock, key, target);
        }
        self.poll(number);
    }

    /// The table of the pool reports a use.
    fn report(&mut self, number: usize, clock: u64, key: Key, target: Target) {
        let lifetime_ms = self.plan.settings.lifetime_ms;
        let daemon = &mut self.daemons[number];
        if let Some(before) = daemon.reader.used(clock, key, target, lifetime_ms) {
            daemon.replica.report(clock, &key, before, target);
        }
        self.poll(number);
    }
}

/// A message without the lists of a digest.
fn shown(message: &impl std::fmt::Debug) -> String {
    let mut text = format!("{message:?}");
    if text.contains("Digest") {
        text.truncate(110);
    }
    text
}
