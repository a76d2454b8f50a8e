//! The client side: many connections that send lines of work and keep account of every one.
//!
//! What it is: one thread with one event loop that opens connections, sends lines when they are
//! due, and judges each reply. What it knows: the `lines` protocol from the client's side, and
//! time. What it must never know: what stands behind the listener.
//!
//! Lines are sent by an absolute schedule, whatever the replies do, so that a slow daemon does not
//! slow down its own measurement: the latency of a line counts from when it was due. How late the
//! load itself was is reported beside it. Without a rate, each connection keeps as many lines on
//! their way as it may.
//!
//! ```text
//!   Opening ──all are open──► Sending ──time is over, or stopped──► Waiting ──nothing is owed──► end
//!      │                         │                                     │
//!      └─ none can be opened ─►  └─ every connection is gone ─► end    └─ WAIT_MAX is over ─► end
//! ```

pub mod cli;

mod account;
mod alarm;
mod client;
mod connection;
mod fleet;
mod pace;
mod reply;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use event::{Address, Epoll, Loop, LoopSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ledger;
use account::Account;
use client::Client;
use pace::Pace;

/// Connections that are being opened at once, so that the listener's backlog holds them.
pub const OPENING_MAX: usize = 128;

/// How long the opening of connections may take before the run begins with those that are open.
pub const OPENING_TIME_MAX: Duration = Duration::from_secs(10);

/// How long replies are waited for after the last line; the rest is unknown.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a lost connection waits before it is opened again: the first time, and at most.
pub const RECONNECT_AFTER: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(1));

/// How long a refused line waits before it is sent again.
pub const RESEND_AFTER: Duration = Duration::from_millis(10);

/// How often progress is told.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Descriptors that are no connections.
const DESCRIPTORS_SPARE: u64 = 64;

/// The id of the first line.
const ID_FIRST: u64 = 1;

/// What to send, where, and how fast.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The listener.
    pub to: Address,
    /// How many connections, at least 1.
    pub connections: usize,
    /// Lines a second of each connection, above 0 and at most [`RATE_MAX`]. None: as fast as
    /// `in_flight` allows.
    pub rate: Option<f64>,
    /// Lines of one connection that may be on their way at once, at least 1. A line that is due
    /// when there are as many waits, which counts as latency.
    pub in_flight: u32,
    /// How long lines are sent.
    pub duration: Duration,
    /// How the lines look.
    pub lines: Lines,
    /// Which replies acknowledge a line.
    pub reply: ReplyCheck,
    /// Where to keep the account of every line.
    pub ledger: Option<PathBuf>,
    /// Makes the contents of the lines; the same seed makes the same.
    pub seed: u64,
    /// Open a connection again after it was lost. Its lines that had no reply are never sent
    /// again: whether they took effect is unknown.
    pub reconnect: bool,
    /// Send a line again after it was refused, for as long as lines are sent.
    pub resend_refused: bool,
}

/// Lines a second of one connection that can be asked for.
pub const RATE_MAX: f64 = 1e6;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lines {
    /// ID AT PATH STATUS
    Work,
    /// {"id":…,"at":…,"path":"…","status":…}
    Json,
}

/// Which replies acknowledge a line. Whatever the choice, a reply that begins with `!` or `-` does
/// not, and a `+` before any other is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReplyCheck {
    /// `ok ID` with the line's own id
    #[value(name = "ack")]
    AckWithId,
    /// The line's own record, as a line or as JSON
    Echo,
    /// Any reply
    Any,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Connections that are open.
    pub opened: usize,
    /// Connections there should be.
    pub connections: usize,
    /// Since the first line was due; zero while connections are being opened.
    pub elapsed: Duration,
    /// Lines sent.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused.
    pub refused: u64,
    /// Lines failed or unknown.
    pub failed_or_unknown: u64,
    /// Lines on their way.
    pub outstanding: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
}

/// What came out of a run.
///
/// Of the lines, `sent` is the sum of `acknowledged`, `refused`, `failed`, `unknown`, and
/// `misdirected` without `unasked`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Connections.
    pub connections: usize,
    /// Lines sent, each counted once.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused for good.
    pub refused: u64,
    /// Lines tried without effect.
    pub failed: u64,
    /// Lines that may or may not have taken effect.
    pub unknown: u64,
    /// Replies that were not for the line whose turn it was, or for none.
    pub misdirected: u64,
    /// Of them, those that came when nothing had been asked.
    pub unasked: u64,
    /// Times that a refused line was sent again.
    pub resent: u64,
    /// Lines that were due and not sent: no connection, or too many on their way.
    pub unsent: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
    /// Replies that were no acknowledgement, by their code; `other` for unknown ones.
    pub codes: Vec<(&'static str, u64)>,
    /// From when a line was due to its acknowledgement.
    pub latency: Quantiles,
    /// From when a line was due to when it was sent; zeros without a rate.
    pub lateness: Quantiles,
    /// From the first line to the last reply.
    pub seconds: f64,
}

/// Times of many lines, exact to three digits and at least a microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of the lines took no longer.
    pub p50: Duration,
    /// 99 % of the lines took no longer.
    pub p99: Duration,
    /// No line took longer.
    pub max: Duration,
}

/// Runs to the end. `progress` is called while connections are opened, once more when the last is
/// open and the first line has not been sent, and then every [`PROGRESS_EVERY`].
///
/// Raises the process' soft limit of descriptors where the connections need it.
///
/// # Errors
/// When the settings are out of their bounds, no connection can be opened, one fails to open and
/// `reconnect` is off, or the ledger cannot be written.
pub fn run(settings: &LoadSettings, progress: &mut dyn FnMut(&Progress)) -> io::Result<Summary> {
    run_until(settings, &AtomicBool::new(false), progress)
}

/// As [`run`], but stops sending when `stop` becomes true, within [`PROGRESS_EVERY`].
///
/// # Errors
/// As [`run`].
pub fn run_until(
    settings: &LoadSettings,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> io::Result<Summary> {
    run_within(settings, Patience::default(), stop, progress)
}

/// How long a run waits for others.
#[derive(Clone, Copy, Debug)]
struct Patience {
    opening: Duration,
    replies: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { opening: OPENING_TIME_MAX, replies: WAIT_MAX }
    }
}

fn run_within(
    settings: &LoadSettings,
    patience: Patience,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> io::Result<Summary> {
    let pace = checked(settings)?;
    raise_descriptor_limit(settings.connections)?;
    let ledger = match &settings.ledger {
        None => None,
        Some(path) => {
            let created = ledger::Writer::create(path, settings.seed, ID_FIRST);
            Some(created.map_err(|error| {
                io::Error::new(error.kind(), format!("the ledger {}: {error}", path.display()))
            })?)
        }
    };
    let mut event_loop = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let mut client = Client::new(settings, patience, pace, Account::new(ledger), stop, progress);
    client.open(&mut event_loop.calls())?;
    event_loop.run(&mut client)?;
    client.finish()
}

fn checked(settings: &LoadSettings) -> io::Result<Option<Pace>> {
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if settings.connections == 0 || u32::try_from(settings.connections).is_err() {
        return wrong("there must be at least one connection");
    }
    if settings.in_flight == 0 {
        return wrong("at least one line must be allowed on its way");
    }
    match settings.rate {
        None => Ok(None),
        Some(rate) if rate > 0.0 && rate <= RATE_MAX => {
            Ok(Some(Pace::new(rate, settings.connections as u64)))
        }
        Some(_) => wrong("the rate must be above 0 and at most 1000000 lines a second"),
    }
}

fn raise_descriptor_limit(connections: usize) -> io::Result<()> {
    let needed = connections as u64 + DESCRIPTORS_SPARE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = limit.maximum.filter(|&maximum| maximum < needed) {
        let why =
            format!("{connections} connections need {needed} descriptors; {maximum} is the limit");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}
