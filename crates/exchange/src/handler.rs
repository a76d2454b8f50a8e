//! Workers that run in our own process, on threads: databases, embedders' code.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Outcome, Request, Slice};

/// The requests that fill one slot.
#[derive(Debug, Default)]
pub struct Batch {
    /// In the order in which they were admitted.
    pub requests: Vec<Request>,
}

/// Where a handler puts its answers.
pub trait Outbox {
    /// Sends a part of the reply to request `index` of the batch. May block until its client has
    /// taken earlier parts.
    ///
    /// # Errors
    /// [`Gone`](HandlerError::Gone) when nobody wants the reply any more.
    fn part(&mut self, index: usize, part: Slice) -> Result<(), HandlerError>;

    /// Whether parts of the reply to request `index` are sent on as they come. Where they are not,
    /// they are kept until its end, within a limit.
    fn streams(&self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// Ends request `index` of the batch. Never blocks. The first answer counts; a second is
    /// dropped and counted.
    fn answer(&mut self, index: usize, outcome: Outcome);

    /// Sends on at once what was answered so far; otherwise that happens when `serve` returns.
    fn flush(&mut self);
}

/// A worker in our process. One value lives on one thread and serves one batch at a time.
///
/// What it does not answer before it returns, or before it panics, ends as `unknown`.
pub trait Handler: Send {
    /// Serves the requests of a slot. `stop` tells when their clients or the daemon no longer
    /// want the answers.
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop);
}

/// Makes the handlers of a pool, one a thread.
pub trait Factory: Send + Sync {
    /// Opens what a handler needs. Called on the handler's own thread, and again after a back-off
    /// when it failed.
    ///
    /// # Errors
    /// When it cannot be opened now; the text says what an operator should know.
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError>;
}

/// Why a handler could not be opened, or not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// It cannot be opened; the text says what an operator should know.
    Open(Arc<str>),
    /// Nobody wants the reply any more.
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

/// Tells a handler from another thread that it should come to an end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once the end was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
