//! Effects of a pool: what the caller must do.

use exchange::{Cause, WorkerId, WorkerIndex};

/// The next action that the caller of a pool must carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<P> {
    /// Send a request to a worker. The requests of one batch follow each other.
    Dispatch {
        /// The worker, which is ready.
        worker: WorkerId,
        /// The request.
        payload: P,
        /// Whether this is the last request of the batch of its slot. The caller must release the slot once.
        last: bool,
    },
    /// Answer a request with a rejection.
    Refuse {
        /// The request, which no worker has received.
        payload: P,
        /// [`Cause::Waited`], [`Cause::Down`], or [`Cause::Draining`] when the last worker is gone after
        /// [`handle_stop`](crate::Pool::handle_stop).
        cause: Cause,
    },
    /// Start a worker. The answer is [`handle_started`](crate::Pool::handle_started) or
    /// [`handle_start_failed`](crate::Pool::handle_start_failed).
    Start {
        /// The id of the worker from now until its end.
        worker: WorkerId,
    },
    /// Send a token of a worker to the owner shard of the pool, which is another shard. The owner shard receives it
    /// with [`handle_token`](crate::Pool::handle_token).
    ToOwner {
        /// The worker.
        index: WorkerIndex,
    },
    /// Stop a worker, which is idle. The answer is [`handle_ended`](crate::Pool::handle_ended).
    Stop {
        /// The worker.
        worker: WorkerId,
    },
}

/// A rejected request, returned to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<P> {
    /// The request.
    pub payload: P,
    /// [`Cause::Full`], [`Cause::Down`] or [`Cause::Draining`].
    pub cause: Cause,
}
