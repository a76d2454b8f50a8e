//! `serve` and `run`: starts a daemon from a configuration.
//!
//! Threads: the first shard runs its loop on the main thread, and each other shard runs on a thread of its own. There
//! is one thread each for the supervisor's messages, for signals, for reloading the file, and for the admin address.
//! Handlers have threads of their own.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

#[cfg(feature = "admin")]
use control::Admin;
use event::{Epoll, Kernel, Poll, Select};
use gateway::{Fleet, HandlerRegistry, ShardMail};
use serde_json::{Map, Value, json};
#[cfg(feature = "admin")]
use settings::Address;
use settings::{Configuration, EventKernel, Remark};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::access_log::AccessLog;
#[cfg(feature = "admin")]
use crate::admin::admin_settings;
use crate::binding::{BindError, SocketFiles, bind_all};
use crate::cluster::ClusterThread;
use crate::handler_registry::Handlers;
use crate::memory::memory_max;
use crate::reload::Reloader;
use crate::shards::{self, Common, EventLoops, ShardThreads, ShardsError};
use crate::{descriptors, error_log, exposure, server_sockets};

/// Why the daemon could not start or continue.
#[derive(Debug)]
pub enum DaemonError {
    /// The address of a listener cannot be used.
    Bind(BindError),
    /// The admin address cannot be served.
    #[cfg(feature = "admin")]
    Admin {
        /// The address.
        address: Address,
        /// The cause.
        error: control::AdminError,
    },
    /// An option of the admin address cannot be used.
    AdminOption(String),
    /// The access log cannot be opened.
    AccessLog(io::Error),
    /// The cluster cannot be used.
    Cluster(String),
    /// The configuration names something that cannot be created.
    Build(gateway::BuildError),
    /// Programs of a user could be started but not ended.
    User(String),
    /// Programs cannot be started.
    Spawner(spawn::SpawnError),
    /// A required system call failed.
    System(&'static str, io::Error),
}

impl std::fmt::Display for DaemonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(f),
            #[cfg(feature = "admin")]
            Self::Admin { address, error } => {
                write!(f, "the admin address {address} cannot be served: {error}")?;
                match error {
                    control::AdminError::System(error) => crate::binding::hint(f, error),
                    _ => Ok(()),
                }
            }
            Self::AdminOption(message) | Self::Cluster(message) | Self::User(message) => {
                f.write_str(message)
            }
            Self::AccessLog(error) => write!(f, "the access log cannot be opened: {error}"),
            Self::Build(error) => error.fmt(f),
            Self::Spawner(error) => write!(f, "no program can be started: {error}"),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for DaemonError {}

impl DaemonError {
    /// Returns the error as a remark at the option that causes it, if an option of the file causes it.
    #[must_use]
    pub fn remark(&self) -> Option<Remark> {
        let Self::Build(error) = self else { return None };
        Some(crate::shard_reload::remark(error)).filter(|remark| !remark.path.is_empty())
    }
}

/// Serves a configuration until a signal stops the daemon. SIGTERM and SIGINT drain; a second one stops immediately;
/// SIGHUP reloads the `file` of the configuration. The exit code is 0, or 1 if requests were cut off or replies were
/// not read.
///
/// # Errors
/// The daemon could not start. No request was served.
pub fn serve(configuration: Configuration, file: Option<&Path>) -> Result<ExitCode, DaemonError> {
    let hangup = (configuration.access_log.is_some() || file.is_some()).then_some(SIGHUP);
    // From now on, so that a reload during a slow start does not end the daemon. It is carried out afterwards.
    let signals = Signals::new(hangup)
        .map_err(|error| DaemonError::System("signals cannot be watched", error))?;
    error_log::hide(&configuration);
    if let Some(remark) = exposure::users_beyond_control(&configuration).into_iter().next() {
        return Err(DaemonError::User(format!("{}: {}", remark.path.join("."), remark.message)));
    }
    spawn::withhold(configuration.secret_variables())
        .map_err(|error| DaemonError::System("secrets cannot be protected", error))?;
    let (event, given) = (configuration.daemon.event, (configuration, file, signals));
    match event {
        EventKernel::Auto | EventKernel::Epoll => serve_on(Epoll::new, "epoll", given),
        EventKernel::Poll => serve_on(Poll::new, "poll", given),
        EventKernel::Select => serve_on(Select::new, "select", given),
    }
}

/// Runs the daemon on one kind of kernel. This is the only function that is generic over the kernel.
fn serve_on<K: Kernel + Send + 'static>(
    kernel: impl Fn() -> io::Result<K>,
    name: &'static str,
    (configuration, file, signals): (Configuration, Option<&Path>, Signals),
) -> Result<ExitCode, DaemonError> {
    descriptors::report(&configuration);
    let refused = server_sockets::refused(&configuration, false);
    for remark in exposure::checks_as_root(&configuration).into_iter().chain(refused) {
        tracing::warn!("{}", remark.message);
    }
    let loops = EventLoops::new(&configuration, kernel, None)
        .map_err(|error| DaemonError::System("the event loop cannot be made", error))?;
    let (mut shard_threads, ready, log) = prepare((configuration, file, signals), name, loops)?;
    ready.cluster.iter().for_each(ClusterThread::wait);
    shard_threads.start();
    announce(&ready);
    let result = shard_threads
        .run()
        .map_err(|error| DaemonError::System("the event loop cannot go on", error))?;
    if let Some(log) = log {
        log.finish();
    }
    let clean = result == gateway::DrainResult::default();
    if !clean {
        let gateway::DrainResult { cut, unread } = result;
        tracing::error!(
            requests = cut,
            clients = unread,
            "ended with requests cut off, or replies unread"
        );
    }
    Ok(ExitCode::from(u8::from(!clean)))
}

/// The admin address in a program that was built without it. It cannot be created.
#[cfg(not(feature = "admin"))]
struct Admin {
    address: std::convert::Infallible,
}

/// The state that is complete when the daemon is ready.
struct Ready {
    listeners: Vec<(String, String)>,
    /// The admin address. It is served, and its token file exists, until this value is dropped.
    admin: Option<Admin>,
    cluster: Option<ClusterThread>,
    event: &'static str,
    shards: usize,
    /// The socket files are removed when this value is dropped.
    _files: SocketFiles,
}

/// Prepares everything except running the loops.
fn prepare<K: Kernel + Send + 'static>(
    (configuration, file, signals): (Configuration, Option<&Path>, Signals),
    name: &'static str,
    loops: EventLoops<K>,
) -> Result<(ShardThreads<K>, Ready, Option<AccessLog>), DaemonError> {
    loops.find_names(&configuration).map_err(|error| match error {
        ShardsError::Build(error) => DaemonError::Build(error),
        ShardsError::System(error) => DaemonError::System("a thread cannot be started", error),
    })?;
    let (sockets, addresses, files) = bind_all(&configuration).map_err(DaemonError::Bind)?;
    let log = configuration.access_log.as_ref().map(|log| AccessLog::start(&log.to));
    let (log, sink) = log.transpose().map_err(DaemonError::AccessLog)?.unzip();
    let fleet = Arc::clone(loops.fleet());
    let max = memory_max(configuration.daemon.memory_max);
    fleet.set_memory_max(max);
    descriptors::publish(&fleet);
    tracing::info!("memory_max is {max} bytes");
    let spawner =
        spawn::Spawner::new(shards::reports(Arc::clone(&fleet))).map_err(DaemonError::Spawner)?;
    let admin = configuration.admin.clone();
    let handler_registry: Arc<dyn HandlerRegistry> = Arc::new(Handlers);
    let reloader = file.map(|file| {
        let serving = configuration.clone();
        Reloader::new(file.to_owned(), serving, Arc::clone(&fleet), Arc::clone(&handler_registry))
    });
    let cluster = ClusterThread::start(&configuration, &fleet).map_err(DaemonError::Cluster)?;
    let common = Common {
        configuration,
        sockets,
        handler_registry,
        spawner: Box::new(spawner),
        admission: None,
        access_log: sink,
    };
    let shard_threads = loops.build(common).map_err(|error| match error {
        ShardsError::Build(error) => DaemonError::Build(error),
        ShardsError::System(error) => DaemonError::System("a listener cannot be shared", error),
    })?;
    let access = shard_threads.access();
    let admin = admin.map(|admin| serve_admin(admin, access, reloader.as_ref(), cluster.as_ref()));
    let admin = admin.transpose()?;
    let count = fleet.length();
    let reload = reloader.map(|reloader| reloader.start()).transpose();
    let reload =
        reload.map_err(|error| DaemonError::System("a thread cannot be started", error))?;
    watch_signals(signals, fleet, log.clone(), reload)?;
    let ready =
        Ready { listeners: addresses, admin, cluster, event: name, shards: count, _files: files };
    Ok((shard_threads, ready, log))
}

/// Prints the ready line to standard output: `ready {"listeners": …, "admin": …}`.
fn announce(ready: &Ready) {
    let addresses = |(name, address): &(String, String)| (name.clone(), json!(address));
    let listeners: Map<String, Value> = ready.listeners.iter().map(addresses).collect();
    let ready = json!({
        "listeners": listeners,
        "admin": ready.admin.as_ref().map(|admin| admin.address.to_string()),
        "event": ready.event,
        "shards": ready.shards,
        "pid": std::process::id(),
    });
    let mut out = io::stdout().lock();
    // An error is ignored: if the reader has closed the pipe, the line is not needed.
    let _ = writeln!(out, "ready {ready}").and_then(|()| out.flush());
}

#[cfg(feature = "admin")]
fn serve_admin(
    admin: settings::Admin,
    access: gateway::Access,
    reloader: Option<&Arc<Reloader>>,
    cluster: Option<&ClusterThread>,
) -> Result<Admin, DaemonError> {
    let settings =
        admin_settings(&admin).map_err(|unusable| DaemonError::AdminOption(unusable.message))?;
    control::start(settings, access, reloader.map(ordered), operations(cluster))
        .map_err(|error| DaemonError::Admin { address: admin.listen, error })
}

#[cfg(not(feature = "admin"))]
fn serve_admin(
    _: settings::Admin,
    _: gateway::Access,
    _: Option<&Arc<Reloader>>,
    _: Option<&ClusterThread>,
) -> Result<Admin, DaemonError> {
    let text = "`[admin]`: this program was built without the admin address (the feature `admin`)";
    Err(DaemonError::AdminOption(text.to_owned()))
}

/// Returns the operations on the cluster that the admin address offers.
#[cfg(feature = "cluster")]
fn operations(cluster: Option<&ClusterThread>) -> Option<control::Cluster> {
    cluster.map(ClusterThread::operations)
}

#[cfg(all(feature = "admin", not(feature = "cluster")))]
fn operations(_: Option<&ClusterThread>) -> Option<control::Cluster> {
    None
}

/// Returns the operations on the configuration file that the admin address offers.
#[cfg(feature = "admin")]
fn ordered(reloader: &Arc<Reloader>) -> control::Reload {
    let (applied, previewed) = (Arc::clone(reloader), Arc::clone(reloader));
    control::Reload {
        apply: Arc::new(move || applied.reload()),
        preview: Arc::new(move || previewed.preview().to_string()),
    }
}

fn watch_signals(
    mut signals: Signals,
    fleet: Arc<Fleet>,
    log: Option<AccessLog>,
    reload: Option<impl Fn() + Send + 'static>,
) -> Result<(), DaemonError> {
    for signal in [SIGTERM, SIGINT] {
        signals
            .add_signal(signal)
            .map_err(|error| DaemonError::System("signals cannot be watched", error))?;
    }
    let watch = move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                log.iter().for_each(AccessLog::reopen);
                reload.iter().for_each(|reload| reload());
                continue;
            }
            tracing::info!(signal, "draining; another signal ends at once");
            fleet.send_to_all(|| ShardMail::Drain);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map(drop)
        .map_err(|error| DaemonError::System("a thread cannot be started", error))
}
