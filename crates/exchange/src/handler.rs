//! Workers that run in this process, on threads: databases and the code of embedders.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Outcome, Request, Response, Slice};

/// The requests in one slot.
#[derive(Debug, Default)]
pub struct Batch {
    /// The requests, in the order in which they were admitted.
    pub requests: Vec<Request>,
}

/// The interface through which a handler sends its answers.
pub trait Outbox {
    /// Sends a part of the reply to request `index` of the batch. May block until the client has received earlier
    /// parts.
    ///
    /// # Errors
    /// [`Gone`](HandlerError::Gone) if the reply is no longer needed.
    fn part(&mut self, index: usize, part: Slice) -> Result<(), HandlerError>;

    /// Whether parts of the reply to request `index` are sent to the client as they arrive. If not, they are buffered
    /// until the end of the reply, up to a limit.
    fn streams(&self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// Ends request `index` of the batch. Never blocks. If a request is answered twice, the second answer is dropped
    /// and counted.
    fn answer(&mut self, index: usize, outcome: Outcome);

    /// Ends request `index` of the batch with an HTTP response, which follows the parts that were sent before. Never
    /// blocks. A client that does not use HTTP receives only the body.
    fn respond(&mut self, index: usize, response: Response) {
        self.answer(index, Outcome::Reply(response.body));
    }

    /// Sends the answers so far immediately. Without this call they are sent when `serve` returns.
    fn flush(&mut self);
}

/// A worker in this process. A value lives on one thread and serves one batch at a time.
///
/// Requests that are not answered when `serve` returns or panics end as `unknown`.
pub trait Handler: Send {
    /// Serves the requests of a slot. `stop` is set when the clients have gone or the daemon stops, so that the answers
    /// are no longer needed.
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop);
}

/// Creates the handlers of a pool, one for each thread.
pub trait Factory: Send + Sync {
    /// Opens the resources of a handler. Called on the handler's own thread, and again after a back-off if it failed.
    ///
    /// # Errors
    /// If the resources cannot be opened now. The text is for the operator.
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError>;
}

/// Why a handler could not be opened or cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// The handler could not be opened. The text is for the operator.
    Open(Arc<str>),
    /// The reply is no longer needed.
    Gone,
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(text) => f.write_str(text),
            Self::Gone => f.write_str("nobody wants the reply any more"),
        }
    }
}

impl std::error::Error for HandlerError {}

/// A flag by which another thread asks a handler to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the handler to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the handler was asked to stop.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
