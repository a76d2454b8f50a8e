//! What a pool asks its owner to do.

use exchange::{Cause, WorkerId, WorkerIndex};

/// What the owner of a pool must do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<P> {
    /// Give this request to this worker. The requests of one batch follow each other.
    Dispatch {
        /// A worker that is ready.
        worker: WorkerId,
        /// The request.
        payload: P,
        /// Whether it is the last of its slot's batch. One release is owed for the slot.
        last: bool,
    },
    /// Answer this request with a refusal.
    Refuse {
        /// The request, which no worker has seen.
        payload: P,
        /// [`Cause::Waited`], [`Cause::Down`] or, when the last worker is gone after
        /// [`handle_stop`](crate::Pool::handle_stop), [`Cause::Draining`].
        cause: Cause,
    },
    /// Start a worker; answer with [`handle_started`](crate::Pool::handle_started) or
    /// [`handle_start_failed`](crate::Pool::handle_start_failed).
    Start {
        /// The id that it has from now until its end.
        worker: WorkerId,
    },
    /// Mail a token of this worker to the home of the pool, which is another shard;
    /// it is taken in there by [`handle_token`](crate::Pool::handle_token).
    ToOwner {
        /// The worker.
        index: WorkerIndex,
    },
    /// End this worker, which has nothing to do; answer with
    /// [`handle_ended`](crate::Pool::handle_ended).
    Stop {
        /// The worker.
        worker: WorkerId,
    },
}

/// A request that is not taken, given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<P> {
    /// The request.
    pub payload: P,
    /// [`Cause::Full`], [`Cause::Down`] or [`Cause::Draining`].
    pub cause: Cause,
}
