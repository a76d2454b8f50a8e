//! Pools, as they are configured.

use std::time::Duration;

use super::address::Address;
use super::balance::{Balance, CookieMode, KnownBy};
use super::database::{Batch, Database};
use super::program::Program;

/// One pool (`[pool.NAME]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// What its workers are.
    pub worker: Worker,
    /// How many of them.
    pub workers: Workers,
    /// How many requests may wait, and how long.
    pub queue: Queue,
    /// Which free worker is next.
    pub schedule: Schedule,
    /// How many requests one slot takes at once.
    pub batch: Batch,
    /// The pool that a reply goes to as a request.
    pub then: Option<String>,
    /// How long a worker may take for one request before it is ended.
    pub deadline: Duration,
    /// Which requests may be made again though a worker had them.
    pub idempotent: Idempotent,
    /// What the heads of its responses may have, where its workers speak HTTP.
    pub response: ResponseLimits,
    /// Who is bound, who is fit, who waits how, and what it says when it is sorry.
    pub balance: Balance,
}

impl Pool {
    /// Its workers, if they are programs.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        if let Worker::Program(program) = &self.worker { Some(program) } else { None }
    }

    /// Its workers, if they are connections to a database.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        if let Worker::Database(database) = &self.worker { Some(database) } else { None }
    }

    /// The name of its workers, if they are handlers of the program that embeds us.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        if let Worker::Handler(name) = &self.worker { Some(name) } else { None }
    }

    /// Its workers, if they are servers.
    #[must_use]
    pub const fn servers(&self) -> Option<&Servers> {
        if let Worker::Servers(servers) = &self.worker { Some(servers) } else { None }
    }

    /// How many files its workers may have open at once: pipes and a socket of a program, connections to servers,
    /// and four files of a connection to a database, which is what SQLite may open.
    #[must_use]
    pub fn open_files_max(&self) -> u64 {
        match &self.worker {
            Worker::Program(_) | Worker::Database(_) => u64::from(self.workers.max) * 4,
            Worker::Handler(_) => 0,
            Worker::Servers(servers) => {
                let slots = |server: &Server| server.slots.unwrap_or(servers.requests_max);
                servers.servers.iter().map(slots).map(u64::from).sum()
            }
        }
    }

    /// Whether something of it needs one place, so that its home alone serves it: clients that are
    /// bound by a table, a limit of the pool as a whole, batches, and requests that go on to another
    /// pool.
    #[must_use]
    pub fn needs_one_place(&self) -> bool {
        let has_table = self.balance.sticky.as_ref().is_some_and(|sticky| match &sticky.by {
            KnownBy::Key(_) => true,
            KnownBy::Cookie(cookie) => cookie.mode == CookieMode::Passive,
        });
        let batches = self.batch.rows > 1 || !self.batch.wait.is_zero();
        has_table || batches || self.balance.slots_max.is_some() || self.then.is_some()
    }
}

/// Limits of the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Bytes, its status line included.
    pub head_max: usize,
    /// Header fields.
    pub fields_max: u32,
}

/// Which requests may be made again though a worker may have done what they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotent {
    /// None.
    None,
    /// Those whose methods ask for no change.
    Safe,
    /// Those whose methods mean the same when they are made twice.
    Methods,
    /// All.
    All,
}

/// What the workers of a pool are.
#[derive(Clone, Debug, PartialEq)]
pub enum Worker {
    /// Local programs on pipes.
    Program(Box<Program>),
    /// A database, through threads of ours.
    Database(Box<Database>),
    /// A handler of the program that embeds us, by its name.
    Handler(String),
    /// Servers that speak HTTP.
    Servers(Servers),
}

/// Servers that speak HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Each of them.
    pub servers: Vec<Server>,
    /// Requests that one of them has at once.
    pub requests_max: u32,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long nothing may come of a reply.
    pub between: Duration,
    /// How long a request may take in all; zero: as long as it goes on.
    pub total: Duration,
    /// How long a connection is kept for the next request.
    pub keep: Duration,
    /// After so long without a word the kernel asks whether a server is there; zero: never.
    pub tcp_keepalive: Duration,
    /// How often the addresses of those that have a name are looked up.
    pub resolve: Duration,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens: an address, a Unix socket or a name.
    pub address: Address,
    /// How much it gets compared with the others, 0 to 256.
    pub weight: u32,
    /// Requests that it has at once; none: as many as the others.
    pub slots: Option<u32>,
    /// It serves only when no other can.
    pub backup: bool,
}

/// How many workers a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Never fewer.
    pub min: u32,
    /// Never more.
    pub max: u32,
    /// Kept free beyond the busy ones, as far as `max` allows.
    pub spare: u32,
    /// A worker beyond `min` and `spare` that had nothing to do for so long is ended.
    pub idle: Duration,
    /// A request that waited so long is a reason to start another worker.
    pub grow_after: Duration,
    /// More waiting requests than this are a reason to start workers at once; none: only age is.
    pub grow_above: Option<u32>,
}

/// A rule for the number of workers that people know by a name: other defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The defaults of the table.
    Elastic,
    /// Always the same number.
    Static,
    /// Some are kept ready before they are needed.
    Prefork,
    /// None until somebody asks.
    OnDemand,
    /// Grows with the length of the queue.
    Queue,
}

/// How many requests may wait, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Requests.
    pub length: u32,
    /// Bytes of memory that they hold.
    pub bytes: usize,
    /// How long one may wait before it is refused.
    pub wait: Duration,
}

/// Which free worker is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each in its turn.
    RoundRobin,
    /// Each in its turn, as often as its weight says.
    WeightedRoundRobin,
    /// The one with the fewest requests in its hands.
    LeastOutstanding,
    /// Of two drawn by chance, the one with fewer requests in its hands.
    TwoChoices,
    /// Drawn by chance.
    Random,
    /// The one that the request's key belongs to.
    Hash,
    /// The first that is free.
    First,
}
