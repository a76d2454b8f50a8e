//! Commands of an operator that apply to all machines of a site.
//!
//! The names are checked here, with the workers of this daemon. Then the command is stored, and every machine applies it
//! when it is delivered, also this one.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gateway::{Access, Order, PoolStatus};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cluster::{CommandFailure, FailureKind, SharedCommand, SharedCommands};
use crate::pages::{ask_status, not_found};

/// The maximum time until the command is stored and applies to this daemon. It is stored within 2 seconds or not at all.
const STORED_TIMEOUT: Duration = Duration::from_secs(4);

/// Stores a command for a pool that all machines have.
pub(crate) async fn carry_out(
    access: &Access,
    shared: &SharedCommands,
    command: SharedCommand,
) -> Response {
    let Some(status) = ask_status(access).await else {
        let text = "the shard does not answer: nothing was changed\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let Some(pool) = status.pools.iter().find(|pool| pool.name == command.pool) else {
        return not_found(&format!("there is no pool {}", command.pool));
    };
    let command = match named(pool, command) {
        Ok(command) => command,
        Err(text) => return not_found(&text),
    };
    let done = done(&command, &shared.site);
    let (reply, answer) = oneshot::channel();
    // The client may have disconnected.
    (shared.store)(command, Box::new(move |result| drop(reply.send(result))));
    match timeout(STORED_TIMEOUT, answer).await {
        Ok(Ok(Ok(remark))) if remark.is_empty() => format!("{done}\n").into_response(),
        Ok(Ok(Ok(remark))) => format!("{done}; {remark}\n").into_response(),
        Ok(Ok(Err(failure))) => refused(&failure),
        Err(_) | Ok(Err(_)) => {
            let text = "a shard does not answer: the command may be stored, and may not be in force here yet\n";
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

/// Replaces the name of a worker by its name in the configuration.
fn named(pool: &PoolStatus, mut command: SharedCommand) -> Result<SharedCommand, String> {
    let worker = match &mut command.order {
        Order::Fallback(_) => return Ok(command),
        Order::Weight(worker, _)
        | Order::Disable(worker)
        | Order::Enable(worker)
        | Order::Drain(worker)
        | Order::Stored { worker, .. } => worker,
    };
    // The log, `/status` and `ROADSTEAD_WORKER` prefix the name with that of the pool.
    let short = worker.strip_prefix(&pool.name).and_then(|rest| rest.strip_prefix('/'));
    let mut names = pool.places.iter().map(|place| &place.name);
    let found = names.clone().find(|name| *name == worker);
    match found.or_else(|| names.find(|name| Some(name.as_str()) == short)) {
        Some(name) => {
            *worker = name.clone();
            Ok(command)
        }
        None => {
            let workers: Vec<_> = pool.places.iter().map(|place| place.name.as_str()).collect();
            let (name, workers) = (&pool.name, workers.join(", "));
            Err(format!("pool {name} has no worker {worker}; its workers are {workers}"))
        }
    }
}

/// The answer to a command that is stored.
fn done(command: &SharedCommand, site: &str) -> String {
    let pool = &command.pool;
    let (worker, done) = match &command.order {
        Order::Fallback(on) => {
            let state = if *on { "on" } else { "off" };
            return format!(
                "fallback of pool {pool} is switched {state} on all machines of site {site}"
            );
        }
        Order::Weight(worker, Some(weight)) => (worker, format!("has the weight {weight}")),
        Order::Weight(worker, None) => (worker, "has its configured weight".to_owned()),
        Order::Disable(worker) => (worker, "is disabled".to_owned()),
        Order::Enable(worker) => (worker, "is enabled".to_owned()),
        Order::Drain(worker) => {
            (worker, "is drained, and serves only clients that are bound to it,".to_owned())
        }
        Order::Stored { worker, admin_state, .. } => {
            (worker, format!("is {}", admin_state.as_str()))
        }
    };
    format!("server {worker} of pool {pool} {done} on all machines of site {site}")
}

fn refused(CommandFailure { kind, reason }: &CommandFailure) -> Response {
    let (status, rest) = match kind {
        FailureKind::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "nothing was changed\nhelp: `roadstead ctl cluster status` shows the reason; `--local` changes only this machine",
        ),
        FailureKind::Conflict => (
            StatusCode::CONFLICT,
            "nothing was changed\nhelp: `roadstead ctl cluster status` shows what is stored",
        ),
        FailureKind::Unknown => (
            StatusCode::GATEWAY_TIMEOUT,
            "it is unknown whether the command is stored\nhelp: `roadstead ctl cluster status` shows what is stored",
        ),
        FailureKind::Late => {
            (StatusCode::SERVICE_UNAVAILABLE, "other machines may follow it already")
        }
    };
    (status, format!("{reason}: {rest}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(order: Order) -> SharedCommand {
        SharedCommand { pool: "shop".to_owned(), order, who: String::new() }
    }

    #[test]
    fn the_answer_says_that_all_machines_follow() {
        let worker = || "10.0.1.1:8000".to_owned();
        for (order, expected) in [
            (
                Order::Disable(worker()),
                "server 10.0.1.1:8000 of pool shop is disabled on all machines of site main",
            ),
            (
                Order::Weight(worker(), Some(3)),
                "server 10.0.1.1:8000 of pool shop has the weight 3 on all machines of site main",
            ),
            (
                Order::Fallback(false),
                "fallback of pool shop is switched off on all machines of site main",
            ),
        ] {
            assert_eq!(done(&command(order), "main"), expected);
        }
    }

    #[test]
    fn a_refusal_says_whether_anything_was_changed() {
        for (kind, status) in [
            (FailureKind::Unavailable, 503),
            (FailureKind::Conflict, 409),
            (FailureKind::Unknown, 504),
            (FailureKind::Late, 503),
        ] {
            let response = refused(&CommandFailure { kind, reason: "x".to_owned() });
            assert_eq!(response.status(), status);
        }
    }
}
