//! The order to read the configuration file again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Reads the configuration file again. A sentence for the operator, or why nothing has changed. May
/// block: it is called on a thread of its own.
pub type Reload = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

pub(crate) async fn answer(State(reload): State<Option<Reload>>) -> Response {
    let Some(reload) = reload else {
        return (StatusCode::NOT_FOUND, "the daemon was started without a file\n").into_response();
    };
    match tokio::task::spawn_blocking(move || reload()).await {
        Ok(Ok(text)) => format!("{text}\n").into_response(),
        Ok(Err(text)) => (StatusCode::CONFLICT, text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "it could not be read\n").into_response(),
    }
}
