//! Pools, as they are configured.

use std::time::Duration;

use super::balance::{Balancing, CookieMode, KnownBy, Waiting};
use super::database::{Batch, Database};
use super::program::Program;
use super::servers::{Server, Servers};
use crate::options::kinds::GIB;
use crate::options::{Group, Of, Options, Reload, Setting, options, words};

options! {
    /// One pool (`[pool.NAME]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Pool of Any reload Live {
        /// Its name.
        name: String => name {};
        /// How many workers.
        workers: Workers as table_or_span = inner;
        /// How many requests may wait, and how long.
        queue: Queue as table = inner;
        /// Which free worker is next. Threads of handlers are woken in their order, so that few stay warm.
        balance: BalanceMethod as word = (handler "first", other "round-robin");
        /// Balancing, affinity, health, the queue and the fallback.
        balancing: Balancing;
        /// Maximum time for a response. For programs and databases the whole response: a program that takes longer is
        /// killed. For servers until the first byte of the response.
        response_timeout: Duration as time = "30s";
        /// Which requests may be made again, by another worker, though one of servers or programs had them and ended,
        /// or answered with what is no reply. `retries` says how often.
        idempotent: Idempotent as word = "methods";
        /// What the heads of its responses may have, where its workers speak HTTP.
        response: ResponseLimits;
        /// What its workers are.
        worker: Worker => worker {
            /// A handler that the program which embeds Roadstead has registered under this name.
            handler: Option<String> as name, of(Of::Handler), reload(Reload::Restart);
            program: Program;
            database: Database;
            servers: Servers;
        };
        /// The pool that a reply goes to as a request.
        then: Option<String> as pool, of(Of::Program), reload(Reload::RestartIf("there are several shards"));
        /// How many requests one slot takes at once.
        batch: Batch => batch {
            /// How many requests are committed at once. A batch leaves when a worker is free and it is full or old
            /// enough.
            batch: Batch as table = inner, of(Of::Database), instead("a program takes one request at a time; `pipeline` sends it more before it answers");
        };
    }
}

fn name(group: &Group) -> String {
    group.name.clone()
}

fn worker(group: &Group) -> Worker {
    if let Some(handler) = group.text("handler") {
        Worker::Handler(handler.to_owned())
    } else if group.find("database").is_some() {
        Worker::Database(Box::new(Database::fill(group)))
    } else if group.find("servers").is_some() {
        Worker::Servers(Servers::fill(group))
    } else {
        Worker::Program(Box::new(Program::fill(group)))
    }
}

/// Queries are answered one by one: several at once would only wait for each other, unless somebody
/// wants that.
fn batch(group: &Group) -> Batch {
    let batch: Batch = Batch::of(group.value("batch"));
    let is_given = group.inner("batch").is_some_and(|batch| batch.place("rows").is_some());
    if group.find("query").is_some() && !is_given { Batch { rows: 1, ..batch } } else { batch }
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
                let slots =
                    |server: &Server| server.concurrent_max.unwrap_or(servers.concurrent_max);
                servers.servers.iter().map(slots).map(u64::from).sum()
            }
        }
    }

    /// Whether something of it needs one place, so that its home alone serves it: clients that are
    /// bound by a table, a limit of the pool as a whole, batches, and requests that go on to another
    /// pool.
    #[must_use]
    pub fn needs_one_place(&self) -> bool {
        let has_table = self.balancing.sticky.as_ref().is_some_and(|sticky| match &sticky.by {
            KnownBy::Key(_) => true,
            KnownBy::Cookie(cookie) => cookie.mode == CookieMode::Passive,
        });
        let batches = self.batch.rows > 1 || !self.batch.timeout.is_zero();
        has_table || batches || self.balancing.concurrent_max.is_some() || self.then.is_some()
    }
}

options! {
    /// Limits of the head of a response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ResponseLimits of Any reload Live {
        /// Of servers and of programs that serve HTTP: bytes of the head of a response, its status line included;
        /// over it the response is a 502 (`head-too-long`).
        head_max("response_head_max"): usize as size(256, 65_535) = "32KiB";
        /// Of servers and of programs that serve HTTP: header fields of a response; over it the response is a 502
        /// (`too-many-fields`).
        fields_max("response_fields_max"): u32 as count(1, 10_000) = "100";
    }
}

words! {
    /// Which requests may be made again though a worker may have done what they ask for.
    pub enum Idempotent {
        /// None of which a byte reached a worker.
        Off = "off",
        /// Requests of HTTP that ask for no change: GET, HEAD, OPTIONS and TRACE.
        Safe = "safe",
        /// Those, and PUT and DELETE, which mean the same when they are made twice.
        Methods = "methods",
        /// Every request, whatever its method, and everything that programs on pipes are given.
        All = "all",
    }
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

options! {
    /// How many workers a pool has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Workers of Any reload Live {
        /// Minimum number; 0: workers are started on demand.
        min: u32 as count(0, 10_000) = "1";
        /// Never more; when it is not given, at least `min`.
        max: u32 as count(1, 10_000) = (program "4", database "1");
        /// Kept free beyond the busy ones, as far as `max` allows.
        spare: u32 as count(0, 10_000) = "0";
        /// A worker beyond `min` and `spare` that had nothing to do for so long is ended.
        idle_timeout: Duration as time = "30s";
        /// A request that waited so long is a reason to start another worker.
        grow_after: Duration as time_or_zero = "10ms";
        /// More waiting requests than this are a reason to start workers at once; without it only their age is.
        grow_above: Option<u32> as count(0, 1_000_000);
    }
}

options! {
    /// How many requests may wait, and how long.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Queue of Any reload Live {
        /// Requests.
        requests_max("max_requests"): u32 as count(1, 10_000_000) = "10000";
        /// Bytes of memory that they hold.
        bytes_max("max_bytes"): usize as size(1, 64 * GIB) = "64MiB";
        /// Maximum time in the queue. A request that waits longer is rejected.
        timeout: Duration => timeout {
            /// Maximum time in the queue. A request that waits longer is rejected.
            timeout: Duration as time = "5s";
            waiting: Waiting;
        };
    }
}

/// The other options of this table are in [`Balancing`].
fn timeout(group: &Group) -> Duration {
    Duration::of(group.value("timeout"))
}

words! {
    /// Which free worker is next.
    pub enum BalanceMethod {
        /// Each in turn, as often as its weight says, evenly spread.
        RoundRobin = "round-robin",
        /// The one with the fewest requests in flight, relative to its weight.
        LeastRequests = "least-requests",
        /// Of two random ones, the one with fewer requests in flight, relative to its weight.
        PowerOfTwo = "power-of-two",
        /// Random, by weight.
        Random = "random",
        /// The one that the key in `hash` is mapped to, unless it has more than 5/4 of its share.
        Hash = "hash",
        /// The first free one.
        First = "first",
    }
}
