//! The configuration of handlers on threads.

use std::sync::Arc;
use std::time::Duration;

use exchange::Factory;
use flow::request_shape::RequestShape;

/// The configuration of a pool of handlers on threads.
pub struct HandlerThreadsConfig {
    /// Creates one handler per thread.
    pub factory: Arc<dyn Factory>,
    /// The maximum duration of a batch.
    pub deadline: Duration,
    /// The form in which the handlers accept HTTP requests. A query has no effect, so it is aborted when its client
    /// disconnects.
    pub shape: RequestShape,
}

impl std::fmt::Debug for HandlerThreadsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerThreadsConfig")
            .field("deadline", &self.deadline)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
