//! What does the jobs of a pool, and what comes back of a job that was not taken.

use std::error::Error;
use std::fmt;

/// What a thread does with its jobs. It is made on the thread, by the pool's `open`, and stays
/// there: a database connection can live in it.
pub type Serve<J> = Box<dyn FnMut(J)>;

/// Why a thread could not be opened.
pub type OpenError = Box<dyn Error + Send + Sync>;

/// A job that brings its own work.
pub type Task = Box<dyn FnOnce() + Send>;

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many jobs wait as may.
    Full,
    /// The pool takes no more jobs: it drains.
    Draining,
}

/// A job that was not taken, unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<J> {
    /// The job.
    pub job: J,
    /// Why.
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
