//! The cluster: its state, and the comparison of this daemon's tables with those of other machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gateway::Order;

/// What the daemon offers about its cluster. The functions may block: they are called on a separate thread.
#[derive(Clone)]
pub struct Cluster {
    /// Returns the state as JSON.
    pub status: Arc<dyn Fn() -> String + Send + Sync>,
    /// Returns the differences from other machines as JSON, or an error that says why there is none.
    pub check: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// Returns metrics in the Prometheus text format. It does not block.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Commands that apply to all machines; `None`: they apply to this daemon.
    pub commands: Option<SharedCommands>,
}

/// Commands that apply to all machines of a site.
#[derive(Clone)]
pub struct SharedCommands {
    /// The name of the site.
    pub site: String,
    /// The pools whose workers have the same names on all machines.
    pub pools: Arc<BTreeSet<String>>,
    /// Stores a command. It does not block.
    pub store: Arc<dyn Fn(SharedCommand, CommandReply) + Send + Sync>,
}

impl std::fmt::Debug for SharedCommands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCommands").field("site", &self.site).finish_non_exhaustive()
    }
}

/// A command that applies to all machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCommand {
    /// The pool.
    pub pool: String,
    /// What is to be done.
    pub order: Order,
    /// The client that gave it.
    pub who: String,
}

/// Receives the outcome of a command: a remark about this daemon, which may be empty, once the command applies here.
pub type CommandReply = Box<dyn FnOnce(Result<String, CommandFailure>) + Send>;

/// Why a command does not apply to all machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The kind.
    pub kind: FailureKind,
    /// The reason.
    pub reason: String,
}

/// The kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It was not stored, and nothing was changed: no server could be reached, or none stored it.
    Unavailable,
    /// It was not stored, and nothing was changed: what is stored does not allow it now.
    Conflict,
    /// It may be stored.
    Unknown,
    /// It is stored, but does not apply to this daemon yet.
    Late,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

pub(crate) async fn status(State(cluster): State<Option<Cluster>>) -> Response {
    let Some(cluster) = cluster else { return without_cluster() };
    match tokio::task::spawn_blocking(move || (cluster.status)()).await {
        Ok(json) => as_json(json),
        Err(_) => unread(),
    }
}

pub(crate) async fn check(State(cluster): State<Option<Cluster>>) -> Response {
    let Some(cluster) = cluster else { return without_cluster() };
    match tokio::task::spawn_blocking(move || (cluster.check)()).await {
        Ok(Ok(json)) => as_json(json),
        Ok(Err(text)) => (StatusCode::CONFLICT, text + "\n").into_response(),
        Err(_) => unread(),
    }
}

fn as_json(json: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], json + "\n").into_response()
}

fn without_cluster() -> Response {
    let text = "the configuration of this daemon has no section `[cluster]`, so it shares nothing with other machines\n\
                help: add `[cluster]` with `nats` and `secret` and restart the daemon: docs/cluster.md\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

fn unread() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "it could not be read\n").into_response()
}
