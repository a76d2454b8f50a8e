//! Commands of operators that all machines of a site share: between the admin address, the bucket and the shards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cluster::{
    ApplySetting, Author, Cluster, CommandError, CommandRequest, EntryChange, OperatorKey, Setting,
};
use control::{CommandFailure, CommandReply, FailureKind, SharedCommand, SharedCommands};
use gateway::{AdminState, Fleet, Order, OrderResult};
use settings::Configuration;

/// The pools with `servers`: their workers have the same names on all machines.
pub(super) fn pools(configuration: &Configuration) -> BTreeSet<String> {
    let shared = configuration.pools.iter().filter(|pool| pool.servers().is_some());
    shared.map(|pool| pool.name.clone()).collect()
}

/// Applies what is stored to the shards of this daemon.
pub(super) fn apply(fleet: Arc<Fleet>) -> ApplySetting {
    Box::new(move |key, setting, author, replies| {
        let by = author.map_or_else(
            || "its entry was deleted".to_owned(),
            |Author { who, machine, when }| format!("set by {who} on {machine} at {when}"),
        );
        let order = match (key, setting) {
            (OperatorKey::Worker { worker, .. }, Setting::Worker { admin_state, weight }) => {
                Order::Stored { worker: worker.clone(), admin_state, weight, by }
            }
            (OperatorKey::Fallback { pool }, Setting::Fallback(on)) => {
                tracing::warn!("fallback of pool {pool}: {by}");
                Order::Fallback(on)
            }
            // The value of a key is of its kind.
            _ => return,
        };
        let is_fallback = matches!(order, Order::Fallback(_));
        let done = move |result| {
            let remark = match result {
                OrderResult::Done(_) if is_fallback => String::new(),
                OrderResult::Done(remark) => remark,
                OrderResult::Unknown(text) => format!("on this machine {text}"),
            };
            replies.into_iter().for_each(|reply| reply(Ok(remark.clone())));
        };
        fleet.apply_stored(key.pool(), order, Box::new(done));
    })
}

/// The commands that the admin address offers.
pub(super) fn commands(
    cluster: Arc<Cluster>,
    pools: Arc<BTreeSet<String>>,
    (site, machine): (String, String),
) -> SharedCommands {
    let store = move |command: SharedCommand, reply: CommandReply| {
        let SharedCommand { pool, order, who } = command;
        let (key, change) = request(pool, order);
        let author = Author { who, machine: machine.clone(), when: now() };
        let answer = move |result: Result<String, (CommandError, String)>| {
            reply(result.map_err(|(error, reason)| failure(&error, reason)));
        };
        cluster.command(CommandRequest { key, change, author }, Box::new(answer));
    };
    SharedCommands { site, pools, store: Arc::new(store) }
}

fn request(pool: String, order: Order) -> (OperatorKey, EntryChange) {
    let (worker, change) = match order {
        Order::Fallback(on) => return (OperatorKey::Fallback { pool }, EntryChange::Fallback(on)),
        Order::Weight(worker, weight) => (worker, EntryChange::Weight(weight)),
        Order::Disable(worker) => (worker, EntryChange::AdminState(AdminState::Disabled)),
        Order::Enable(worker) => (worker, EntryChange::AdminState(AdminState::Enabled)),
        Order::Drain(worker) => (worker, EntryChange::AdminState(AdminState::Drained)),
        Order::Stored { worker, admin_state, .. } => (worker, EntryChange::AdminState(admin_state)),
    };
    (OperatorKey::Worker { pool, worker }, change)
}

fn failure(error: &CommandError, reason: String) -> CommandFailure {
    let kind = match error {
        CommandError::Unreachable | CommandError::Rejected(_) | CommandError::Busy => {
            FailureKind::Unavailable
        }
        CommandError::Conflict | CommandError::Unreadable => FailureKind::Conflict,
        CommandError::Unknown => FailureKind::Unknown,
        CommandError::Late => FailureKind::Late,
    };
    CommandFailure { kind, reason }
}

fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// A time in milliseconds since the Unix epoch, as RFC 3339 in UTC. All have the same length.
fn date(unix_ms: i64) -> String {
    let (seconds, ms) = (unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000));
    let (year, month, day) = exchange::civil_from_days(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_text_that_can_be_compared() {
        assert_eq!(date(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(date(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
        assert!(date(1_709_210_096_007) < date(1_709_210_096_010));
    }
}
