//! `serve` and `run`: a configuration becomes a running daemon.
//!
//! Threads: the shard's loop on the main thread, one that talks to the keeper, one for signals, one
//! for the admin address, and those of the handlers.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use event::{BindSettings, Epoll, Fd, Loop, LoopSettings, Mailbox};
use gateway::metrics::Metrics;
use gateway::{Access, Mail, Parts, Shard, Threads};
use serde_json::{Map, Value, json};
use settings::{Address, Configuration};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::workshop::Handlers;

/// Why the daemon could not start or go on.
#[derive(Debug)]
pub enum DaemonError {
    /// A listener's address cannot be had.
    Bind {
        /// Which listener.
        listener: String,
        /// Where it should listen.
        address: Address,
        /// Why not.
        error: io::Error,
    },
    /// The admin address cannot be had.
    Admin {
        /// Which.
        address: Address,
        /// Why not.
        error: io::Error,
    },
    /// The configuration names something that cannot be made.
    Plan(gateway::PlanError),
    /// Programs cannot be started at all.
    Spawner(spawn::SpawnError),
    /// The system refused something that nothing works without.
    System(&'static str, io::Error),
}

impl std::fmt::Display for DaemonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind { listener, address, error } => {
                write!(f, "listener `{listener}` cannot listen on {address}: {error}")
            }
            Self::Admin { address, error } => {
                write!(f, "the admin address {address} cannot be had: {error}")
            }
            Self::Plan(error) => error.fmt(f),
            Self::Spawner(error) => write!(f, "no program can be started: {error}"),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for DaemonError {}

/// Serves a configuration until a signal ends it. SIGTERM and SIGINT drain; a second one ends at
/// once. The exit code is 0, or 1 when requests were cut off or replies not read.
///
/// # Errors
/// When it cannot start; nothing was served then.
pub fn serve(configuration: Configuration) -> Result<ExitCode, DaemonError> {
    let started = (Instant::now(), SystemTime::now());
    let mut turning: Loop<Epoll, Mail> = Epoll::new()
        .and_then(|kernel| Loop::new(kernel, LoopSettings::default()))
        .map_err(|error| DaemonError::System("the event loop cannot be made", error))?;
    let mailbox = turning.mailbox();
    let metrics = Arc::new(Metrics::new(&configuration));
    let (sockets, addresses) = bind_all(&configuration)?;
    let spawner = {
        let mailbox = mailbox.clone();
        spawn::Spawner::new(Box::new(move |report| mailbox.post(Mail::Program(report))))
            .map_err(DaemonError::Spawner)?
    };
    let admin = configuration.admin.clone();
    let mut shard = Shard::new(Parts {
        configuration,
        sockets,
        workshop: Arc::new(Handlers),
        spawner: Box::new(spawner),
        runner: Box::new(Threads),
        mailbox: mailbox.clone(),
        metrics: Arc::clone(&metrics),
        started,
        seed: seed(started.1),
    })
    .map_err(DaemonError::Plan)?;
    let access = Access::new(mailbox.clone(), metrics);
    let admin = admin
        .map(|admin| {
            control::start(&admin.listen, access)
                .map_err(|error| DaemonError::Admin { address: admin.listen, error })
        })
        .transpose()?;
    watch_signals(mailbox)?;
    shard.start(&mut turning.calls());
    announce(&addresses, admin.as_ref());
    turning
        .run(&mut shard)
        .map_err(|error| DaemonError::System("the event loop cannot go on", error))?;
    let result = shard.result();
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

fn seed(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_secs() ^ u64::from(since.subsec_nanos()))
}

type Bound = (Vec<(String, Fd)>, Vec<(String, String)>);

/// Binds every listener, and says where.
fn bind_all(configuration: &Configuration) -> Result<Bound, DaemonError> {
    let (mut sockets, mut addresses) = (Vec::new(), Vec::new());
    for listener in &configuration.listeners {
        let address = match listener.listen.clone() {
            Address::Internet(address) => event::Address::Internet(address),
            Address::Unix(path) => event::Address::Unix(path),
        };
        let settings = BindSettings { backlog: listener.backlog, ..BindSettings::default() };
        let (socket, bound) = event::bind(&address, &settings).map_err(|error| {
            let address = listener.listen.clone();
            DaemonError::Bind { listener: listener.name.clone(), address, error }
        })?;
        addresses.push((listener.name.clone(), bound.to_string()));
        sockets.push((listener.name.clone(), socket));
    }
    Ok((sockets, addresses))
}

/// The one line on standard output, for whoever started us: `ready {"listeners": …, "admin": …}`.
fn announce(listeners: &[(String, String)], admin: Option<&Address>) {
    let listeners: Map<String, Value> =
        listeners.iter().map(|(name, address)| (name.clone(), json!(address))).collect();
    let ready = json!({
        "listeners": listeners,
        "admin": admin.map(ToString::to_string),
        "pid": std::process::id(),
    });
    let mut out = io::stdout().lock();
    // Whoever does not read it does not need it.
    let _ = writeln!(out, "ready {ready}").and_then(|()| out.flush());
}

fn watch_signals(mailbox: Mailbox<Mail>) -> Result<(), DaemonError> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])
        .map_err(|error| DaemonError::System("signals cannot be watched", error))?;
    let watch = move || {
        for signal in signals.forever() {
            tracing::info!(signal, "draining; another signal ends at once");
            mailbox.post(Mail::Drain);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .map(drop)
        .map_err(|error| DaemonError::System("a thread cannot be started", error))
}
