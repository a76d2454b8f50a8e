//! Pools.

use std::time::Duration;

use super::balance::{Balancing, CookieMode, KnownBy, QueueOptions};
use super::database::{Batch, Database};
use super::program::Program;
use super::servers::{Server, Servers};
use crate::options::kinds::GIB;
use crate::options::{Group, Needs, Options, Reload, Setting, WorkerKind, options, words};

options! {
    /// One pool (`[pool.NAME]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Pool of Any reload Live {
        /// The name.
        name: String => name {};
        /// Number of workers.
        workers: Workers as table_or_span = inner;
        /// Limits of the queue.
        queue: Queue as table = inner;
        /// Balance method: which free worker receives the next request. Threads of handlers are woken in a fixed order,
        /// so that few of them stay warm.
        balance: BalanceMethod as word = (handler "first", other "round-robin"), former(&["schedule"]);
        /// Balancing, session affinity, health checks, the queue and the fallback.
        balancing: Balancing;
        /// Maximum time for a response. For programs and databases the whole response: a program that takes longer is
        /// killed. For servers until the first byte of the response.
        response_timeout: Duration as time = "30s", former(&["deadline"]);
        /// Which requests may be sent to another worker after a server or program received them and ended, or sent an
        /// invalid reply. `retries` limits the number of attempts.
        idempotent: Idempotent as word = "methods";
        /// Limits of the response heads, for workers that speak HTTP.
        response: ResponseLimits;
        /// The kind of the workers, and its options.
        worker: Worker => worker {
            /// Name of a handler that the embedding program has registered.
            handler: Option<String> as name, of(WorkerKind::Handler), reload(Reload::Restart);
            program: Program;
            database: Database;
            servers: Servers;
        };
        /// Pool that receives each reply as a request.
        then: Option<String> as pool, of(WorkerKind::Program), reload(Reload::RestartIf("there are several shards")), needs(Needs::Pipes);
        /// How many requests one slot takes together.
        batch: Batch => batch {
            /// How many requests are committed together. A batch is sent when a worker is free and the batch is full or
            /// old enough.
            batch: Batch as table = inner, of(WorkerKind::Database), instead("a program takes one request at a time; `pipeline` sends it more before it answers");
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

/// Queries are answered one by one by default: several in a batch would only wait for each other.
fn batch(group: &Group) -> Batch {
    let batch: Batch = Batch::of(group.value("batch"));
    let is_given = group.inner("batch").is_some_and(|batch| batch.place("rows").is_some());
    if group.find("query").is_some() && !is_given { Batch { rows: 1, ..batch } } else { batch }
}

impl Pool {
    /// The options of its workers, if they are programs.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        if let Worker::Program(program) = &self.worker { Some(program) } else { None }
    }

    /// The options of its workers, if they are connections to a database.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        if let Worker::Database(database) = &self.worker { Some(database) } else { None }
    }

    /// The name of its handler, if its workers are handlers of the embedding program.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        if let Worker::Handler(name) = &self.worker { Some(name) } else { None }
    }

    /// The options of its workers, if they are servers.
    #[must_use]
    pub const fn servers(&self) -> Option<&Servers> {
        if let Worker::Servers(servers) = &self.worker { Some(servers) } else { None }
    }

    /// Returns the maximum number of files that its workers have open: pipes and a socket of a program, connections to
    /// servers, and four files of a connection to a database, the maximum of SQLite.
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

    /// Whether a process of another user may be at the other end of a Unix socket of a worker.
    #[must_use]
    pub fn has_unix_peers(&self) -> bool {
        match &self.worker {
            Worker::Program(program) => program.bounds.user.is_some(),
            Worker::Servers(servers) => {
                servers.servers.iter().any(|it| matches!(it.address, crate::Address::Unix(_)))
            }
            Worker::Database(_) | Worker::Handler(_) => false,
        }
    }

    /// Whether a feature of the pool requires that only its owner shard serves it: clients that are bound by a table, a
    /// limit of the pool as a whole, batches, and requests that are passed on to another pool.
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
        /// Maximum size of the head of a response, in bytes, including the status line, of servers and of programs that
        /// serve HTTP. Above it, the response is a 502 (`head-too-long`).
        head_max("response_head_max"): usize as size(256, 65_535) = "32KiB", needs(Needs::HttpWorkers);
        /// Maximum number of header fields of a response, of servers and of programs that serve HTTP. Above it, the
        /// response is a 502 (`too-many-fields`).
        fields_max("response_fields_max"): u32 as count(1, 10_000) = "100", needs(Needs::HttpWorkers);
    }
}

words! {
    /// Which requests may be repeated although a worker may have executed them.
    pub enum Idempotent {
        /// Only requests of which no byte reached a worker.
        Off = "off",
        /// Also HTTP requests that change nothing: GET, HEAD, OPTIONS and TRACE.
        Safe = "safe",
        /// Also PUT and DELETE, which have the same effect when they are repeated.
        Methods = "methods",
        /// Every request, with any method. Only this repeats requests to programs on pipes, also behind HTTP.
        All = "all",
    }
}

/// The kind of the workers of a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum Worker {
    /// Local programs on pipes.
    Program(Box<Program>),
    /// A database, through threads of the daemon.
    Database(Box<Database>),
    /// A handler of the embedding program, by its name.
    Handler(String),
    /// Servers that speak HTTP.
    Servers(Servers),
}

options! {
    /// The number of workers of a pool.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Workers of Any reload Live {
        /// Minimum number of workers; 0: workers are started on demand.
        min: u32 as count(0, 10_000) = "1";
        /// Maximum number of workers. If it is not set, it is at least `min`.
        max: u32 as count(1, 10_000) = (program "4", database "1");
        /// Number of free workers that are kept in addition to the busy ones, up to `max`.
        spare: u32 as count(0, 10_000) = "0";
        /// A worker beyond `min` and `spare` that has been idle for this time is ended.
        idle_timeout: Duration as time = "30s", former(&["idle"]);
        /// Another worker is started when a request has waited for this time.
        grow_after: Duration as time_or_zero = "10ms";
        /// Workers are started immediately when more requests than this wait. Without it, only `grow_after` applies.
        grow_above: Option<u32> as count(0, 1_000_000);
    }
}

options! {
    /// The limits of the queue.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Queue of Any reload Live {
        /// Maximum number of requests in the queue. At three quarters of it, clients of lines and other frames are
        /// paused, unless the pool has a `fallback`. At the limit, other requests are rejected (`full`).
        requests_max("max_requests"): u32 as count(1, 10_000_000) = "10000", former(&["length"]);
        /// Maximum number of bytes of memory that the queued requests hold. Clients are paused as with `max_requests`.
        bytes_max("max_bytes"): usize as size(1, 64 * GIB) = "64MiB", former(&["bytes"]);
        /// Maximum time in the queue. A request that waits longer is rejected.
        timeout: Duration => timeout {
            /// Maximum time in the queue. A request that waits longer is rejected.
            timeout: Duration as time = "5s", former(&["wait"]);
            waiting: QueueOptions;
        };
    }
}

/// The other options of this table are in [`Balancing`].
fn timeout(group: &Group) -> Duration {
    Duration::of(group.value("timeout"))
}

words! {
    /// The balance method: which free worker receives the next request.
    pub enum BalanceMethod {
        /// Each worker in turn, in proportion to its weight, evenly spread.
        RoundRobin = "round-robin",
        /// The worker with the fewest requests in flight, relative to its weight.
        LeastRequests = "least-requests",
        /// Of two random workers, the one with fewer requests in flight, relative to its weight.
        PowerOfTwo = "power-of-two",
        /// A random worker, by weight.
        Random = "random",
        /// The worker that the key in `hash` maps to, unless it has more than 5/4 of its share.
        Hash = "hash",
        /// The first free worker.
        First = "first",
    }
}
