//! The interface of requests in a queue.

use crate::RequestTraits;

/// A request that a pool queues and dispatches.
pub trait Queueable {
    /// Returns the bytes of memory that the request holds while it waits. This is the allocated memory, not only the
    /// used part of it. Every call returns the same number.
    fn bytes(&self) -> usize;

    /// Returns the requirements of the request besides a free worker. By default there are none. A
    /// [`QueueEntry`](crate::QueueEntry) holds them without the payload.
    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits::default()
    }
}
