//! The closure that serves the jobs of a pool, and the error for a job that was refused.

use std::error::Error;
use std::fmt;

/// Serves the jobs of one thread. The pool's `open` creates it on that thread, and it stays there; it can own a
/// database connection.
pub type Serve<J> = Box<dyn FnMut(J)>;

/// Why a thread could not be opened.
pub type OpenError = Box<dyn Error + Send + Sync>;

/// A job that is a closure.
pub type Task = Box<dyn FnOnce() + Send>;

/// Why a job was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The maximum number of jobs is waiting.
    Full,
    /// The pool is draining and takes no more jobs.
    Draining,
}

/// A refused job, unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<J> {
    /// The job.
    pub job: J,
    /// The reason.
    pub why: Refusal,
}

impl<J> fmt::Debug for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<J> fmt::Display for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            Refusal::Full => "the pool's queue is full",
            Refusal::Draining => "the pool takes no more jobs",
        })
    }
}

impl<J> Error for Refused<J> {}
