//! Embeds Roadstead into a program: the data plane with handlers that the program provides.
//!
//! What it is: listeners, queues, pools, limits and metrics as in the daemon, on a thread of its own, and handlers on
//! threads. The number of these threads follows the option `workers` of their pool. What it must never depend on: a
//! command line, a database, an async runtime (except for that of `[cluster]`, with the feature `cluster`).
//!
//! ```
//! use std::io::Read;
//! use std::net::TcpStream;
//! use roadstead::embed::Embed;
//!
//! let text = r#"
//!     [listener.main]
//!     listen = "127.0.0.1:0"
//!     protocol = "connect"              # the connection is the request
//!     pool = "hello"
//!
//!     [pool.hello]
//!     handler = "greeter"
//!     workers = { min = 2, max = 200, spare = 20 }
//! "#;
//! let server = Embed::from_text(text)?
//!     .answering("greeter", || Ok(|request: &_| format!("hello, {}\n", roadstead::embed::text(request)).into()))
//!     .start()?;
//! let mut said = String::new();
//! TcpStream::connect(server.address("main").unwrap())?.read_to_string(&mut said)?;
//! assert!(said.starts_with("hello, 127.0.0.1:"));
//! assert!(server.drain().is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use event::Epoll;
use gateway::{Access, Admission, DrainResult, FactoryError, Fleet, HandlerRegistry, Lookup};
use settings::{EventKernel, Source};
use spawn::Spawn;

use crate::binding::{SocketFiles, bind_all};
use crate::cluster::ClusterThread;
use crate::shard_reload::{self, Applied};
use crate::shards::{self, Common, EventLoops, ShardThreads, ShardsError};

mod closures;
mod error;

pub use closures::{Bytes, text};
use closures::{Opening, OpeningHttp};
pub use error::{EmbedError, NotReady, ReloadError};
pub use exchange::{
    Batch, Cause, Factory, Handler, HandlerError, Head, Outbox, Outcome, Peer, Phase, Request,
    Response, Slice, Stop,
};
pub use gateway::{Answer, ListenerStatus, PoolStatus, Status, Verdict, WorkerStatus};
pub use settings::{
    Builder, Configuration, Diagnostics, HostName, ListenerBuilder, OptionValue, PoolBuilder,
    Remark, RouteBuilder,
};

/// Builds a data plane.
pub struct Embed {
    configuration: Configuration,
    handlers: BTreeMap<String, Arc<dyn Factory>>,
    admission: Option<Admission>,
    lookup: Option<Lookup>,
}

impl Embed {
    /// Enables pools of programs. Call it first in `main`, while the process has one thread. Not needed without such
    /// pools.
    ///
    /// # Errors
    /// The process already has several threads, or the supervisor of programs cannot be started.
    pub fn init() -> Result<(), spawn::SpawnError> {
        spawn::init()
    }

    /// Returns a data plane with this configuration. `[admin]` is not served: see [`Running::metrics`] and
    /// [`Running::status`]. `[cluster]` requires the feature `cluster`, which is on by default.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self { configuration, handlers: BTreeMap::new(), admission: None, lookup: None }
    }

    /// Returns a data plane with this configuration, in the syntax of a configuration file.
    ///
    /// # Errors
    /// Every error in the text, with its location and a suggested fix.
    pub fn from_text(text: &str) -> Result<Self, Diagnostics> {
        parse(text).map(Self::new)
    }

    /// Registers the handlers of pools with `handler = "NAME"`. The factory opens one handler per thread, on that
    /// thread.
    #[must_use]
    pub fn handler(mut self, name: &str, factory: impl Factory + 'static) -> Self {
        self.handlers.insert(name.to_owned(), Arc::new(factory));
        self
    }

    /// Registers handlers that answer each request with bytes. `open` creates one handler per thread, on that thread.
    /// To report that a request cannot be answered, such a handler panics, and the client receives the error `unknown`.
    /// A [`Handler`] can report errors in more detail.
    #[must_use]
    pub fn answering<S>(
        self,
        name: &str,
        open: impl Fn() -> Result<S, String> + Send + Sync + 'static,
    ) -> Self
    where
        S: FnMut(&Request) -> Bytes + Send + 'static,
    {
        self.handler(name, Opening(open))
    }

    /// Registers handlers that answer each request with an HTTP response. They are for pools behind listeners with
    /// `protocol = "http"`: [`Request::head`] returns the method, the target and the header fields, and the body is
    /// complete. A client that does not use HTTP receives only the body of the response. `open` creates one handler per
    /// thread, on that thread. If the handler panics, the client receives a 502.
    #[must_use]
    pub fn responding<S>(
        self,
        name: &str,
        open: impl Fn() -> Result<S, String> + Send + Sync + 'static,
    ) -> Self
    where
        S: FnMut(&Request) -> Response + Send + 'static,
    {
        self.handler(name, OpeningHttp(open))
    }

    /// Sets a callback that decides about each new connection, by the name of the listener and the client. A connection
    /// that is not admitted is closed without a message and counted as refused. The callback runs on the event loop's
    /// thread, so it must not block.
    #[must_use]
    pub fn admit(mut self, admits: impl FnMut(&str, &Peer) -> bool + Send + 'static) -> Self {
        self.admission = Some(Box::new(admits));
        self
    }

    /// Resolves the host names of servers with this function instead of the system's resolver: at the start, and at the
    /// interval of their pool on a separate thread. The function may block.
    #[must_use]
    pub fn lookup(
        mut self,
        lookup: impl Fn(&HostName) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        self.lookup = Some(Arc::new(lookup));
        self
    }

    /// Opens one handler of each kind as a test, binds the listeners and starts serving. The opened handlers are
    /// dropped, and the threads open their own.
    ///
    /// # Errors
    /// The data plane could not start. No request was served.
    pub fn start(self) -> Result<Running, EmbedError> {
        let (started, starts) = channel();
        let thread = std::thread::Builder::new()
            .name("roadstead".to_owned())
            .spawn(move || self.run(&started))
            .map_err(EmbedError::System)?;
        match starts.recv() {
            Ok(Ok(Started { access, addresses, files, live })) => {
                Ok(Running { access, addresses, _files: files, live, thread: Some(thread) })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(EmbedError::System(io::Error::other("its thread ended"))),
        }
    }

    fn run(self, started: &Sender<Result<Started, EmbedError>>) -> DrainResult {
        let (mut shard_threads, access) = match self.prepare() {
            Ok(made) => made,
            Err(error) => {
                // The receiver may be gone.
                let _ = started.send(Err(error));
                return DrainResult::default();
            }
        };
        let cluster = access.live.cluster.clone();
        if started.send(Ok(access)).is_err() {
            return DrainResult::default();
        }
        cluster.iter().for_each(|cluster| cluster.wait());
        shard_threads.start();
        shard_threads.run().unwrap_or_else(|error| {
            tracing::error!(%error, "the event loop cannot go on");
            DrainResult::default()
        })
    }

    /// Checks that the configuration is supported and that every handler can be opened.
    fn check(&self) -> Result<(), EmbedError> {
        if let Some(option) = unsupported(&self.configuration) {
            return Err(EmbedError::Unsupported(option));
        }
        let mut named = self.configuration.pools.iter().filter_map(settings::Pool::handler);
        if named.any(|name| !self.handlers.contains_key(name)) {
            // The build reports the missing handler and the existing ones.
            return Ok(());
        }
        for (name, factory) in &self.handlers {
            let named = |pool: &settings::Pool| pool.handler() == Some(name.as_str());
            if !self.configuration.pools.iter().any(named) {
                return Err(EmbedError::UnusedHandler(name.clone()));
            }
            let opened = catch_unwind(AssertUnwindSafe(|| factory.open().map(drop)));
            let why = match opened {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it panicked".to_owned(),
            };
            return Err(EmbedError::Handler { name: name.clone(), why });
        }
        Ok(())
    }

    fn prepare(self) -> Result<(ShardThreads<Epoll>, Started), EmbedError> {
        self.check()?;
        let Self { configuration, handlers, admission, lookup } = self;
        let loops =
            EventLoops::new(&configuration, Epoll::new, lookup).map_err(EmbedError::System)?;
        let refused = |error| match error {
            ShardsError::Build(error) => EmbedError::Build(error),
            ShardsError::System(error) => EmbedError::System(error),
        };
        loops.find_names(&configuration).map_err(refused)?;
        let (sockets, addresses, files) = bind_all(&configuration).map_err(EmbedError::Bind)?;
        let has_programs = configuration.pools.iter().any(|pool| pool.program().is_some());
        let spawner: Box<dyn Spawn> = if has_programs {
            let reports = shards::reports(Arc::clone(loops.fleet()));
            Box::new(spawn::Spawner::new(reports).map_err(EmbedError::Programs)?)
        } else {
            Box::new(NoPrograms)
        };
        let handler_registry: Arc<dyn HandlerRegistry> = Arc::new(Registered(handlers));
        let cluster = ClusterThread::start(&configuration, loops.fleet());
        let cluster = cluster.map_err(EmbedError::Cluster)?.map(Arc::new);
        let live = Live {
            fleet: Arc::clone(loops.fleet()),
            handler_registry: Arc::clone(&handler_registry),
            cluster,
            serving: Mutex::new(configuration.clone()),
        };
        let common = Common {
            configuration,
            sockets,
            handler_registry,
            spawner,
            admission,
            access_log: None,
        };
        let shard_threads = loops.build(common).map_err(refused)?;
        let access = shard_threads.access();
        Ok((shard_threads, Started { access, addresses, files, live }))
    }
}

impl fmt::Debug for Embed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embed").field("handlers", &self.handlers.keys()).finish_non_exhaustive()
    }
}

/// Returns the option that an embedded data plane does not support.
fn unsupported(configuration: &Configuration) -> Option<&'static str> {
    let kernel = configuration.daemon.event;
    if configuration.access_log.is_some() {
        Some("`[access_log]`")
    } else if !matches!(kernel, EventKernel::Auto | EventKernel::Epoll) {
        Some("`event` of `[daemon]` other than \"epoll\"")
    } else {
        None
    }
}

struct Started {
    access: Access,
    addresses: Vec<(String, String)>,
    files: SocketFiles,
    live: Live,
}

/// The parts of a running data plane that a reload needs.
struct Live {
    fleet: Arc<Fleet>,
    handler_registry: Arc<dyn HandlerRegistry>,
    /// It shares bindings until the event loops have ended and this is dropped.
    cluster: Option<Arc<ClusterThread>>,
    /// The running configuration.
    serving: Mutex<Configuration>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The number of event loops that are busy, and will apply the configuration after this moment.
    pub late: usize,
    /// Changes whose effect may be unexpected.
    pub warnings: Vec<String>,
}

/// A running data plane. Dropping it starts a drain and does not wait for the end.
#[derive(Debug)]
pub struct Running {
    access: Access,
    addresses: Vec<(String, String)>,
    _files: SocketFiles,
    live: Live,
    thread: Option<JoinHandle<DrainResult>>,
}

impl Running {
    /// Returns the address of a listener, with the port that the system chose. The path of a Unix socket is written
    /// `unix:/path`.
    #[must_use]
    pub fn address(&self, listener: &str) -> Option<&str> {
        let mut addresses = self.addresses.iter();
        addresses.find(|(name, _)| name == listener).map(|(_, address)| address.as_str())
    }

    /// Waits until every event loop serves its listeners, and every pool has started its first workers: `min` of
    /// `workers`. Servers are not waited for, because they are started by others. Connections are accepted before that,
    /// and their requests wait in the queues of the pools.
    ///
    /// ```
    /// # use roadstead::embed::Embed;
    /// # use std::time::Duration;
    /// # let text = "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"echo\"\n[pool.echo]\nhandler = \"echo\"\n";
    /// let server = Embed::from_text(text)?
    ///     .answering("echo", || Ok(|request: &roadstead::embed::Request| request.body.clone().into()))
    ///     .start()?;
    /// server.ready(Duration::from_secs(10))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The time has passed, or the data plane has ended. The error states what is missing.
    pub fn ready(&self, timeout: Duration) -> Result<(), NotReady> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let missing = self.missing(left);
            if missing.is_empty() {
                return Ok(());
            }
            if left.is_zero() {
                return Err(NotReady { missing });
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Returns what is missing until the data plane is ready. `wait` is the longest time to wait for an event loop.
    fn missing(&self, wait: Duration) -> Vec<String> {
        let (tell, told) = channel();
        self.access.status(move |status| {
            // The receiver may be gone.
            let _ = tell.send(status);
        });
        let status = match told.recv_timeout(wait.max(Duration::from_millis(10))) {
            Ok(status) => status,
            Err(RecvTimeoutError::Timeout) => return vec!["an event loop does not answer".into()],
            Err(RecvTimeoutError::Disconnected) => return vec!["it has ended".into()],
        };
        if status.draining {
            return vec!["it is draining".into()];
        }
        let serving = self.live.serving();
        let pools = serving.pools.iter().filter(|pool| pool.servers().is_none());
        let missing = pools.filter_map(|pool| {
            let seen = status.pools.iter().find(|seen| seen.name == pool.name)?;
            let started = seen.workers.iter().filter(|worker| worker.state != "starting").count();
            let min = pool.workers.min as usize;
            let why = seen.down_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            (started < min).then(|| {
                format!("pool `{}` has started {started} of {min} workers{why}", pool.name)
            })
        });
        missing.collect()
    }

    /// Replaces the running configuration, as a reload of the daemon does: the new one is validated completely, and
    /// then applied by all event loops or by none. Connections stay open. `docs/reference.md` states for each
    /// option whether a reload changes it. Listeners and pools cannot be added or removed, and handlers stay those that
    /// were registered.
    ///
    /// # Errors
    /// The reload was rejected, and nothing has changed.
    pub fn reload(&self, mut new: Configuration) -> Result<Reloaded, ReloadError> {
        if let Some(option) = unsupported(&new) {
            return Err(ReloadError::Unsupported(option));
        }
        let Live { fleet, handler_registry, .. } = &self.live;
        let mut serving = self.live.serving();
        let reloads = shard_reload::prepare(&serving, &mut new, fleet, handler_registry.as_ref())
            .map_err(ReloadError::Rejected)?;
        let Applied { late, mut warnings } =
            shard_reload::apply(fleet, reloads).ok_or(ReloadError::Ended)?;
        if let Err(error) = fleet.watch_names(&new) {
            warnings.push(format!("names of servers are not looked up again: {error}"));
        }
        fleet.set_memory_max(new.daemon.memory_max.unwrap_or(usize::MAX));
        *serving = new;
        Ok(Reloaded { late, warnings })
    }

    /// Like [`Self::reload`], with a configuration in the syntax of a file.
    ///
    /// # Errors
    /// The text has errors, or the reload was rejected. Nothing has changed.
    pub fn reload_text(&self, text: &str) -> Result<Reloaded, ReloadError> {
        self.reload(parse(text).map_err(ReloadError::Invalid)?)
    }

    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        let cluster = self.live.cluster.as_ref().map(|cluster| cluster.metrics());
        self.access.render_metrics() + &cluster.unwrap_or_default()
    }

    /// Returns the current status, or `None` after the data plane has ended.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let (tell, told) = channel();
        self.access.status(move |status| {
            // The receiver may be gone.
            let _ = tell.send(status);
        });
        told.recv().ok()
    }

    /// Sends one request to a pool and waits for the reply that a client of lines would receive. Returns `None` after
    /// the data plane has ended.
    #[must_use]
    pub fn ask(&self, pool: &str, request: &[u8]) -> Option<Answer> {
        let (tell, told) = channel();
        self.access.ask(pool, request, move |answer| {
            let _ = tell.send(answer);
        });
        told.recv().ok()
    }

    /// Drains and ends: closes the listeners and finishes the accepted requests, within the drain timeout of
    /// `[daemon]`.
    #[must_use]
    pub fn drain(mut self) -> Drained {
        self.access.drain();
        let result = self.thread.take().map(JoinHandle::join);
        match result {
            Some(Ok(DrainResult { cut, unread })) => Drained { cut, unread, panicked: false },
            _ => Drained { cut: 0, unread: 0, panicked: true },
        }
    }
}

impl Live {
    /// The value is consistent after every call, so a poisoned lock can be used after a panic elsewhere.
    fn serving(&self) -> MutexGuard<'_, Configuration> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(text: &str) -> Result<Configuration, Diagnostics> {
    let source = Source { name: "configuration".to_owned(), text: text.to_owned() };
    settings::parse(&source, &|variable| std::env::var(variable).ok())
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.access.drain();
        }
    }
}

/// The result of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Requests that were cut off without a known outcome.
    pub cut: usize,
    /// Clients that had not read all their replies.
    pub unread: usize,
    /// The event loop's thread panicked, which is a bug of Roadstead.
    pub panicked: bool,
}

impl Drained {
    /// Returns whether nothing was cut off.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        self.cut == 0 && self.unread == 0 && !self.panicked
    }
}

/// The registered handlers.
struct Registered(BTreeMap<String, Arc<dyn Factory>>);

impl HandlerRegistry for Registered {
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn Factory>, FactoryError> {
        let Some(name) = pool.handler() else {
            return Err("only handlers and programs can be embedded".to_owned().into());
        };
        self.0.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            format!("no handler `{name}` is registered; there are: {}", names.join(", ")).into()
        })
    }
}

/// The spawner of a data plane without pools of programs.
pub(crate) struct NoPrograms;

impl Spawn for NoPrograms {
    fn start(&mut self, _token: u64, _command: spawn::Command) {
        debug_assert!(false, "no pool has programs");
    }

    fn stop(&mut self, _token: u64, _how: spawn::Stop) {}

    fn program_socket(&mut self, _how: spawn::SocketKind) -> io::Result<spawn::ProgramSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn resident(&self, _process: u32) -> Option<u64> {
        None
    }
}
