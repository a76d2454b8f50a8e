//! What a pool of handlers on threads is configured with.

use std::sync::Arc;
use std::time::Duration;

use exchange::Factory;
use flow::request_shape::RequestShape;

/// What a pool of handlers on threads is configured with.
pub struct HandlerThreadsConfig {
    /// Makes one handler for each thread.
    pub factory: Arc<dyn Factory>,
    /// How long a batch may take.
    pub deadline: Duration,
    /// What requests of HTTP become for them. A request that only reads has no effect: it may be cut short
    /// when its client has left.
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
