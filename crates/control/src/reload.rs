//! The configuration file of the daemon: it is read again on request and compared with the running configuration.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// What the daemon does with its configuration file. Both functions may block: they are called on a separate thread.
#[derive(Clone)]
pub struct Reload {
    /// Reads the file again and applies it. Returns a sentence for the operator, or an error that says why nothing has
    /// changed.
    pub apply: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// Returns the effects of a reload as JSON, and changes nothing.
    pub preview: Arc<dyn Fn() -> String + Send + Sync>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

pub(crate) async fn apply(State(reload): State<Option<Reload>>) -> Response {
    let Some(reload) = reload else { return without_file() };
    match tokio::task::spawn_blocking(move || (reload.apply)()).await {
        Ok(Ok(text)) => format!("{text}\n").into_response(),
        Ok(Err(text)) => (StatusCode::CONFLICT, text).into_response(),
        Err(_) => unread(),
    }
}

pub(crate) async fn preview(State(reload): State<Option<Reload>>) -> Response {
    let Some(reload) = reload else { return without_file() };
    match tokio::task::spawn_blocking(move || (reload.preview)()).await {
        Ok(json) => ([(CONTENT_TYPE, "application/json")], json + "\n").into_response(),
        Err(_) => unread(),
    }
}

fn without_file() -> Response {
    (StatusCode::NOT_FOUND, "the daemon was started without a file\n").into_response()
}

fn unread() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "it could not be read\n").into_response()
}
