//! What waits in a queue, as far as a pool has to know.

use crate::RequestTraits;

/// What a pool queues and dispatches.
pub trait Queueable {
    /// Bytes of memory that it holds while it waits: what was allocated for it, not only what
    /// is used of it. The same number at every call.
    fn bytes(&self) -> usize;

    /// What it asks for besides a free worker. Nothing, unless it is said. An [`QueueEntry`](crate::QueueEntry) says it
    /// without the payload.
    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits::default()
    }
}
