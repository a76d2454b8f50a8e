//! Requests of an operator about load balancing: weights, states of workers, the fallback, and explanations.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gateway::{Access, Order, OrderResult};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::caller::Caller;
use crate::cluster::{Cluster, SharedCommand};
use crate::pages::{STATUS_WAIT, not_found};
use crate::shared_command;

/// The maximum number of decisions on one page.
const DECISIONS_MAX: usize = 100;
/// The maximum weight.
const WEIGHT_MAX: u32 = 256;

/// Waits for the reply of a shard.
async fn ask<T>(ask: impl FnOnce(oneshot::Sender<T>)) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    ask(reply);
    timeout(STATUS_WAIT, answer).await.ok()?.ok()
}

fn silent() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the shard does not answer\n").into_response()
}

async fn order(access: Access, pool: String, order: Order) -> Response {
    let told = ask(|reply| {
        // The client may have disconnected.
        access.order(pool, order, move |told| drop(reply.send(told)));
    });
    match told.await {
        Some(OrderResult::Done(text)) => (StatusCode::OK, format!("{text}\n")).into_response(),
        Some(OrderResult::Unknown(text)) => not_found(&text),
        None => late(),
    }
}

/// Returns the response if the owner shard received the order, but not every shard has confirmed it in time.
fn late() -> Response {
    let text = "a shard does not answer: the order may not be in force on every shard yet\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

pub(crate) async fn fallback(
    State(access): State<Access>,
    State(cluster): State<Option<Cluster>>,
    Path(pool): Path<String>,
    RawQuery(query): RawQuery,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Response {
    let on = match body.trim_ascii() {
        b"on" => true,
        b"off" => false,
        _ => return (StatusCode::BAD_REQUEST, "the body is `on` or `off`\n").into_response(),
    };
    carry_out((access, cluster), (pool, Order::Fallback(on)), query.as_deref(), caller).await
}

/// Carries out a command: on all machines if they share commands for this pool, otherwise at this daemon.
async fn carry_out(
    (access, cluster): (Access, Option<Cluster>),
    (pool, what): (String, Order),
    query: Option<&str>,
    Caller(who): Caller,
) -> Response {
    let is_local = match query {
        None | Some("") => false,
        Some("local") => true,
        Some(_) => {
            let text = "the only parameter of this command is `local`\n";
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
    };
    let shared = cluster.and_then(|cluster| cluster.commands);
    match shared.filter(|shared| !is_local && shared.pools.contains(&pool)) {
        None => order(access, pool, what).await,
        Some(shared) => {
            let command = SharedCommand { pool, order: what, who };
            shared_command::carry_out(&access, &shared, command).await
        }
    }
}

pub(crate) async fn worker(
    State(access): State<Access>,
    State(cluster): State<Option<Cluster>>,
    Path((pool, worker, verb)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Response {
    let what = match verb.as_str() {
        "enable" => Order::Enable(worker),
        "disable" => Order::Disable(worker),
        "drain" => Order::Drain(worker),
        "weight" => match weight(&body) {
            Some(weight) => Order::Weight(worker, weight),
            None => {
                let text = format!("the body is a weight from 0 to {WEIGHT_MAX}, or `default`\n");
                return (StatusCode::BAD_REQUEST, text).into_response();
            }
        },
        _ => {
            let text = "use `enable`, `disable`, `drain` or `weight`\n";
            return (StatusCode::NOT_FOUND, text).into_response();
        }
    };
    carry_out((access, cluster), (pool, what), query.as_deref(), caller).await
}

/// Returns the weight in a body; `Some(None)`: the configured weight.
fn weight(body: &[u8]) -> Option<Option<u32>> {
    let text = std::str::from_utf8(body).ok()?.trim();
    if text == "default" {
        return Some(None);
    }
    text.parse().ok().filter(|weight| *weight <= WEIGHT_MAX).map(Some)
}

pub(crate) async fn why(State(access): State<Access>, Path(id): Path<u64>) -> Response {
    let found = ask(|reply| access.why(id, move |why| drop(reply.send(why))));
    match found.await {
        None => silent(),
        Some(found) if found.is_empty() => {
            let text = format!(
                "nothing is kept of request {id}: it is too long ago, or there was none (see `trace_max` of the pool)\n"
            );
            (StatusCode::NOT_FOUND, text).into_response()
        }
        Some(found) => {
            let mut text = String::new();
            for why in found {
                for decision in why.decisions {
                    text.push_str(&format!("pool {}: {decision}\n", why.pool));
                }
            }
            exchange::visible(&text).into_owned().into_response()
        }
    }
}

pub(crate) async fn lately(State(access): State<Access>, Path(pool): Path<String>) -> Response {
    let asked = pool.clone();
    let found = ask(|reply| access.lately(asked, DECISIONS_MAX, move |all| drop(reply.send(all))));
    match found.await {
        None => silent(),
        Some(None) => not_found(&format!("there is no pool {pool}")),
        Some(Some(decisions)) => {
            let lines =
                decisions.iter().map(|(id, decision)| format!("request {id}: {decision}\n"));
            exchange::visible(&lines.collect::<String>()).into_owned().into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_a_number_in_its_range_or_that_of_the_settings() {
        assert_eq!(weight(b"3\n"), Some(Some(3)));
        assert_eq!(weight(b"0"), Some(Some(0)));
        assert_eq!(weight(b"default"), Some(None));
        for wrong in [&b"257"[..], b"-1", b"", b"heavy", b"\xff"] {
            assert_eq!(weight(wrong), None);
        }
    }
}
