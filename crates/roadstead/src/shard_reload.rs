//! Applies a new configuration to running shards: to all or to none.
//!
//! What it is: the part of a reload that the daemon and an embedded data plane share. What it must never depend on: a
//! file, a signal.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use gateway::{BuildError, Fleet, HandlerRegistry, Reload, ShardMail};
use settings::{Configuration, Remark};

#[cfg(feature = "daemon")]
use crate::error_log;

/// How long to wait for the shards.
const WAIT: Duration = Duration::from_secs(5);

/// The result of a reload.
pub(crate) struct Applied {
    /// The number of busy shards that will apply the configuration when they process their mail.
    pub(crate) late: usize,
    /// The warnings of the other shards.
    pub(crate) warnings: Vec<String>,
}

/// Prepares what the shards apply. The order of `new` is changed to that of the running configuration.
///
/// # Errors
/// Every option that only a restart changes, or the option that cannot be built.
pub(crate) fn prepare(
    serving: &Configuration,
    new: &mut Configuration,
    fleet: &Fleet,
    handler_registry: &dyn HandlerRegistry,
) -> Result<Vec<Reload>, Vec<Remark>> {
    let fixed = settings::restart_required(serving, new);
    if !fixed.is_empty() {
        return Err(fixed);
    }
    settings::in_order_of(serving, new);
    Reload::prepare(serving, new, fleet, handler_registry).map_err(|error| vec![remark(&error)])
}

/// Sends each shard its part, and waits until all have applied it. Returns `None` if the shards end. Late shards have
/// received the mail, and apply it when they process it.
pub(crate) fn apply(fleet: &Fleet, reloads: Vec<Reload>) -> Option<Applied> {
    let (told, answers) = channel();
    let mut warnings = Vec::new();
    let mut late = reloads.len();
    for (shard, reload) in (0..).zip(reloads) {
        let told = told.clone();
        // The receiver may be gone.
        let reply = Box::new(move |taken| told.send(taken).unwrap_or_default());
        let reload = Box::new(reload);
        fleet.mailbox(shard).post(ShardMail::Reload { reload, reply });
    }
    drop(told);
    while late > 0 {
        match answers.recv_timeout(WAIT) {
            Ok(Some(said)) => {
                late -= 1;
                warnings.extend(said);
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(late, "shards have not taken over the settings yet");
                break;
            }
        }
    }
    Some(Applied { late, warnings })
}

/// Returns a remark at the option that caused the error.
pub(crate) fn remark(error: &BuildError) -> Remark {
    let keys: &[&str] = match error {
        BuildError::NoPool(pool) | BuildError::Handler { pool, .. } => &["pool", pool],
        BuildError::Name { pool, .. } => &["pool", pool, "servers"],
        BuildError::NoSecret(_) | BuildError::Unprotected(_) => &[],
        BuildError::Servers(pool) => &["pool", pool, "servers"],
        BuildError::NoSocket(listener) => &["listener", listener],
        BuildError::Variable { pool, .. } => &["pool", pool, "env"],
        BuildError::Fallback { pool, .. } => &["pool", pool, "fallback"],
        BuildError::Reset { pool, .. } => &["pool", pool, "reset"],
        BuildError::Cookie { pool, .. } => &["pool", pool, "sticky", "secret"],
        BuildError::Route { listener, .. } => &["listener", listener],
    };
    let below: &[String] = match error {
        BuildError::Route { place, .. } => place,
        BuildError::Handler { option, .. } => option,
        _ => &[],
    };
    let path = keys.iter().map(|&key| key.to_owned()).chain(below.iter().cloned()).collect();
    let message = error.to_string();
    // The path of a file may be the value of a variable. An embedding program gets it as it is.
    #[cfg(feature = "daemon")]
    let message = error_log::masked(&message).into_owned();
    Remark { path, message }
}
