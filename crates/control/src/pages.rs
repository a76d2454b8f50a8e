//! The pages of the admin address.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gateway::{Access, Answer, Status, Verdict};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::role::Role;
use crate::shared_page::SharedPages;

/// The maximum time that a shard may take to report its status.
pub(crate) const STATUS_WAIT: Duration = Duration::from_secs(2);
const DRAINING: &str = "draining\n";
/// The maximum time of an `ask` request. The limits of its pool are usually shorter.
const ASK_WAIT: Duration = Duration::from_secs(120);

pub(crate) async fn metrics(
    State(access): State<Access>,
    State(cluster): State<Option<Cluster>>,
    State(shared): State<Arc<SharedPages>>,
    Extension(role): Extension<Role>,
) -> impl IntoResponse {
    let render = async || {
        let more = cluster.as_ref().map(|cluster| (cluster.metrics)());
        Some(access.render_metrics() + &more.unwrap_or_default())
    };
    let page = match role {
        Role::Admin => render().await.map(Bytes::from),
        Role::Viewer => shared.metrics.get(render).await,
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.unwrap_or_default())
}

pub(crate) async fn ask_status(access: &Access) -> Option<Status> {
    let (reply, answer) = oneshot::channel();
    access.status(move |status| {
        // The client may have disconnected.
        let _ = reply.send(status);
    });
    timeout(STATUS_WAIT, answer).await.ok()?.ok()
}

pub(crate) async fn status(
    State(access): State<Access>,
    State(shared): State<Arc<SharedPages>>,
    Extension(role): Extension<Role>,
) -> Response {
    let render = async || {
        let status = ask_status(&access).await?;
        let text = format!("{:#}\n", as_json(&status, role));
        Some(exchange::visible(&text).into_owned())
    };
    let page = match role {
        Role::Admin => render().await.map(Bytes::from),
        Role::Viewer => shared.status.get(render).await,
    };
    match page {
        Some(page) => ([(header::CONTENT_TYPE, "application/json")], page).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the shard does not answer\n").into_response(),
    }
}

pub(crate) async fn health(
    State(access): State<Access>,
    State(shared): State<Arc<SharedPages>>,
    Extension(role): Extension<Role>,
) -> Response {
    let ask = async || {
        let status = ask_status(&access).await?;
        Some(if status.draining { DRAINING } else { "ok\n" }.to_owned())
    };
    let page = match role {
        Role::Admin => ask().await.map(Bytes::from),
        Role::Viewer => shared.health.get(ask).await,
    };
    match page {
        Some(page) if page == DRAINING => (StatusCode::SERVICE_UNAVAILABLE, page).into_response(),
        Some(page) => page.into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the shard does not answer\n").into_response(),
    }
}

pub(crate) async fn ask(
    State(access): State<Access>,
    Path(pool): Path<String>,
    body: Bytes,
) -> Response {
    let line = body.strip_suffix(b"\n").unwrap_or(&body);
    if line.contains(&b'\n') {
        return (StatusCode::BAD_REQUEST, "a request is one line\n").into_response();
    }
    let (reply, answer) = oneshot::channel();
    access.ask(&pool, line, move |answer| {
        let _ = reply.send(answer);
    });
    match timeout(ASK_WAIT, answer).await {
        Ok(Ok(answer)) => told(answer),
        _ => (StatusCode::GATEWAY_TIMEOUT, "no answer\n").into_response(),
    }
}

pub(crate) async fn recycle(State(access): State<Access>, Path(pool): Path<String>) -> Response {
    let (reply, answer) = oneshot::channel();
    access.recycle(pool.clone(), move |count| {
        let _ = reply.send(count);
    });
    match timeout(STATUS_WAIT, answer).await {
        Ok(Ok(Some(count))) => {
            format!("{count} workers of pool {pool} are replaced\n").into_response()
        }
        Ok(Ok(None)) => not_found(&format!("there is no pool {pool}")),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the shard does not answer\n").into_response(),
    }
}

/// Returns a 404 response. The text may contain a name from the client, so characters that a terminal would interpret
/// are escaped.
pub(crate) fn not_found(text: &str) -> Response {
    (StatusCode::NOT_FOUND, format!("{}\n", exchange::visible(text))).into_response()
}

/// Converts an answer to a response.
fn told(answer: Answer) -> Response {
    let code = match answer.verdict {
        Verdict::Answered => StatusCode::OK,
        Verdict::Refused => StatusCode::SERVICE_UNAVAILABLE,
        Verdict::Failed => StatusCode::BAD_GATEWAY,
        Verdict::Unknown | Verdict::Left => StatusCode::GATEWAY_TIMEOUT,
    };
    (code, answer.line).into_response()
}

/// Returns the status as JSON. Only clients with full access receive the output of a program, because it may be an
/// error message that contains a password.
fn as_json(status: &Status, role: Role) -> Value {
    let listeners: Vec<Value> = status
        .listeners
        .iter()
        .map(|it| json!({"name": it.name, "connections": it.connections, "accepted": it.accepted}))
        .collect();
    let pools: Vec<Value> = status.pools.iter().map(|pool| pool_as_json(pool, role)).collect();
    json!({
        "draining": status.draining,
        "in_flight": status.exchanges,
        "memory": {
            "bytes": status.memory.held,
            "max_bytes": status.memory.max,
            "over": status.memory.over,
        },
        "listeners": listeners,
        "pools": pools,
    })
}

/// Returns the responses by status class.
fn responses_as_json(responses: &[u64; 5]) -> Value {
    let classes = (1..).zip(responses).map(|(class, count)| (format!("{class}xx"), json!(count)));
    Value::Object(classes.collect())
}

fn pool_as_json(pool: &gateway::PoolStatus, role: Role) -> Value {
    let workers: Vec<Value> = pool
        .workers
        .iter()
        .map(|it| {
            json!({
                "name": it.name,
                "pid": it.pid,
                "state": it.state,
                "in_flight": it.in_flight,
                "served": it.served,
            })
        })
        .collect();
    let places: Vec<Value> = pool
        .places
        .iter()
        .map(|it| {
            json!({
                "name": it.name,
                "weight": it.weight,
                "weight_configured": it.weight_configured,
                "weight_set": it.weight_set,
                "admin_state": it.admin_state,
                "health": it.health,
                "health_cause": it.health_since.map(|(cause, _)| cause),
                "health_since_ms": it.health_since.map(|(_, since)| since.as_millis()),
                "ejected_for_ms": it.ejected_for.map(|time| time.as_millis()),
                "check": match role {
                    Role::Admin => &it.check,
                    Role::Viewer => &it.check_kind,
                },
                "in_use": it.in_use,
                "slots": it.slots,
                "waiting": it.waiting,
                "out": it.out,
                "requests": it.tally.requests,
                "responses": responses_as_json(&it.tally.responses),
                "failures": it.tally.failures,
                "retries": it.tally.retries,
                "ejections": it.tally.ejections,
                "last_failure": it
                    .tally
                    .last_failure
                    .map(|(cause, ago)| json!({"cause": cause, "ms_ago": ago.as_millis()})),
            })
        })
        .collect();
    json!({
        "name": pool.name,
        "queued": pool.queued,
        "queued_bytes": pool.queued_bytes,
        "oldest_ms": pool.oldest.map(|oldest| oldest.as_millis()),
        "down": pool.down,
        "down_reason": match role {
            Role::Admin => &pool.down_reason,
            Role::Viewer => &pool.down_kind,
        },
        "fallback": pool.fallback.map(|(why, time)| json!({"reason": why, "active_ms": time.as_millis()})),
        "bound": pool.bound,
        "on_backup": pool.on_backup,
        "places": places,
        "workers": workers,
    })
}

#[cfg(test)]
mod tests {
    use gateway::{MemoryStatus, PlaceStatus, PoolStatus, WorkerTally};

    use super::*;

    fn status(pools: Vec<PoolStatus>, over: bool) -> Status {
        Status {
            listeners: vec![],
            pools,
            exchanges: 0,
            draining: false,
            shard: 0,
            memory: MemoryStatus { held: 3, max: 2, over },
        }
    }

    #[test]
    fn the_status_has_the_memory_its_limit_and_whether_that_is_exceeded() {
        for over in [true, false] {
            let expected = json!({ "bytes": 3, "max_bytes": 2, "over": over });
            assert_eq!(as_json(&status(vec![], over), Role::Viewer)["memory"], expected);
        }
    }

    #[test]
    fn a_name_that_does_not_exist_does_nothing_to_a_terminal() {
        let response = not_found("there is no pool \x1b[2J\u{9b}");
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let body = runtime.block_on(axum::body::to_bytes(response.into_body(), 100));
        assert_eq!(body.expect("a body"), "there is no pool \\u001b[2J\\u009b\n");
    }

    #[test]
    fn only_full_access_shows_what_a_program_said() {
        let place = PlaceStatus {
            name: "0".to_owned(),
            weight: 1,
            weight_configured: 1,
            weight_set: None,
            admin_state: "enabled",
            health: "down",
            health_since: None,
            ejected_for: None,
            check_kind: Some("it does not answer as expected".to_owned()),
            check: Some("it answers `HUSH` and not `pong`".to_owned()),
            in_use: 0,
            slots: 1,
            waiting: 0,
            out: None,
            tally: WorkerTally::default(),
        };
        let pool = PoolStatus {
            name: "main".to_owned(),
            queued: 0,
            queued_bytes: 0,
            oldest: None,
            down: true,
            down_kind: Some("the program ended (exit code 3)".to_owned()),
            down_reason: Some("the program ended (exit code 3); it said last: HUSH".to_owned()),
            fallback: None,
            bound: 0,
            on_backup: false,
            places: vec![place],
            workers: vec![],
        };
        let status = status(vec![pool], false);
        let shown = |role| as_json(&status, role)["pools"][0]["down_reason"].clone();
        assert_eq!(shown(Role::Viewer), "the program ended (exit code 3)");
        assert_eq!(shown(Role::Admin), "the program ended (exit code 3); it said last: HUSH");
        let check = |role| as_json(&status, role)["pools"][0]["places"][0]["check"].clone();
        assert_eq!(check(Role::Viewer), "it does not answer as expected");
        assert_eq!(check(Role::Admin), "it answers `HUSH` and not `pong`");
    }
}
