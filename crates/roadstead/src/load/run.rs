//! A complete run, from the settings to the summary.

use std::io;
use std::sync::atomic::AtomicBool;

use event::{Epoll, Loop, LoopSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::account::Account;
use super::client::Client;
use super::pace::Pace;
use super::settings::{ID_FIRST, LoadSettings, RATE_MAX, Timeouts};
use super::summary::{Progress, Summary};
use crate::ledger;

/// The number of descriptors that are not connections.
const DESCRIPTORS_SPARE: u64 = 64;

/// Runs to the end. `progress` is called while connections are opened, once more when the last is open and no line has
/// been sent, and then every [`PROGRESS_EVERY`](super::PROGRESS_EVERY).
///
/// Raises the soft limit of descriptors of the process if the connections need more.
///
/// # Errors
/// The settings are out of range, no connection can be opened, one fails to open and `reconnect` is off, or the ledger
/// cannot be written.
pub fn run(settings: &LoadSettings, progress: &mut dyn FnMut(&Progress)) -> io::Result<Summary> {
    run_until(settings, &AtomicBool::new(false), progress)
}

/// Does the same as [`run`], but stops sending when `stop` becomes true, within
/// [`PROGRESS_EVERY`](super::PROGRESS_EVERY).
///
/// # Errors
/// The same as for [`run`].
pub fn run_until(
    settings: &LoadSettings,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> io::Result<Summary> {
    run_within(settings, Timeouts::default(), stop, progress)
}

pub(super) fn run_within(
    settings: &LoadSettings,
    patience: Timeouts,
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
    client.open(&mut event_loop.context())?;
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
