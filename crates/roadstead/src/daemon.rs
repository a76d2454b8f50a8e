//! `serve` and `run`: a configuration becomes a running daemon.
//!
//! Threads: the shard's loop on the main thread, one that talks to the keeper, one for signals, one
//! for the admin address, and those of the handlers.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use event::{Epoll, Kernel, Loop, LoopSettings, Mailbox, Poll, Select};
use gateway::metrics::Metrics;
use gateway::{Access, Mail, Parts, Shard, Threads};
use serde_json::{Map, Value, json};
use settings::{Address, Configuration, EventKernel};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::access_log::AccessLog;
use crate::binding::{self, BindError, bind_all};
use crate::workshop::Handlers;

/// Why the daemon could not start or go on.
#[derive(Debug)]
pub enum DaemonError {
    /// A listener's address cannot be had.
    Bind(BindError),
    /// The admin address cannot be had.
    Admin {
        /// Which.
        address: Address,
        /// Why not.
        error: io::Error,
    },
    /// The access log cannot be opened.
    AccessLog(io::Error),
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
            Self::Bind(error) => error.fmt(f),
            Self::Admin { address, error } => {
                write!(f, "the admin address {address} cannot be had: {error}")
            }
            Self::AccessLog(error) => write!(f, "the access log cannot be opened: {error}"),
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
    match configuration.daemon.event {
        EventKernel::Auto | EventKernel::Epoll => serve_on(Epoll::new(), "epoll", configuration),
        EventKernel::Poll => serve_on(Poll::new(), "poll", configuration),
        EventKernel::Select => serve_on(Select::new(), "select", configuration),
    }
}

/// The one place that is made anew for each kernel.
fn serve_on<K: Kernel>(
    kernel: io::Result<K>,
    name: &'static str,
    configuration: Configuration,
) -> Result<ExitCode, DaemonError> {
    let mut turning: Loop<K, Mail> = kernel
        .and_then(|kernel| Loop::new(kernel, LoopSettings::default()))
        .map_err(|error| DaemonError::System("the event loop cannot be made", error))?;
    let (mut shard, ready, log) = prepare(configuration, name, turning.mailbox())?;
    shard.start(&mut turning.calls());
    announce(&ready);
    turning
        .run(&mut shard)
        .map_err(|error| DaemonError::System("the event loop cannot go on", error))?;
    let result = shard.result();
    drop(shard);
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

/// What is told to whoever started us, once everything is there.
struct Ready {
    listeners: Vec<(String, String)>,
    admin: Option<String>,
    event: &'static str,
}

/// Everything but the loop.
fn prepare(
    configuration: Configuration,
    name: &'static str,
    mailbox: Mailbox<Mail>,
) -> Result<(Shard, Ready, Option<AccessLog>), DaemonError> {
    let started = (Instant::now(), SystemTime::now());
    let metrics = Arc::new(Metrics::new(&configuration));
    let (sockets, addresses) = bind_all(&configuration).map_err(DaemonError::Bind)?;
    let log = configuration.access_log.as_ref().map(|log| AccessLog::start(&log.to));
    let (log, sink) = log.transpose().map_err(DaemonError::AccessLog)?.unzip();
    let spawner = {
        let mailbox = mailbox.clone();
        spawn::Spawner::new(Box::new(move |report| mailbox.post(Mail::Program(report))))
            .map_err(DaemonError::Spawner)?
    };
    let admin = configuration.admin.clone();
    let shard = Shard::new(Parts {
        configuration,
        sockets,
        workshop: Arc::new(Handlers),
        spawner: Box::new(spawner),
        runner: Box::new(Threads),
        mailbox: mailbox.clone(),
        metrics: Arc::clone(&metrics),
        started,
        seed: binding::seed(started.1),
        admission: None,
        access_log: sink,
    })
    .map_err(DaemonError::Plan)?;
    let access = Access::new(mailbox.clone(), metrics);
    let admin = admin
        .map(|admin| {
            control::start(&admin.listen, access)
                .map_err(|error| DaemonError::Admin { address: admin.listen, error })
        })
        .transpose()?;
    watch_signals(mailbox, log.clone())?;
    let admin = admin.as_ref().map(ToString::to_string);
    Ok((shard, Ready { listeners: addresses, admin, event: name }, log))
}

/// The one line on standard output, for whoever started us: `ready {"listeners": …, "admin": …}`.
fn announce(ready: &Ready) {
    let addresses = |(name, address): &(String, String)| (name.clone(), json!(address));
    let listeners: Map<String, Value> = ready.listeners.iter().map(addresses).collect();
    let ready = json!({
        "listeners": listeners,
        "admin": ready.admin,
        "event": ready.event,
        "pid": std::process::id(),
    });
    let mut out = io::stdout().lock();
    // Whoever does not read it does not need it.
    let _ = writeln!(out, "ready {ready}").and_then(|()| out.flush());
}

fn watch_signals(mailbox: Mailbox<Mail>, log: Option<AccessLog>) -> Result<(), DaemonError> {
    let hangup = log.as_ref().map(|_| SIGHUP);
    let watched = [SIGTERM, SIGINT].into_iter().chain(hangup);
    let mut signals = signal_hook::iterator::Signals::new(watched)
        .map_err(|error| DaemonError::System("signals cannot be watched", error))?;
    let watch = move || {
        for signal in signals.forever() {
            if let (SIGHUP, Some(log)) = (signal, &log) {
                log.reopen();
                continue;
            }
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
