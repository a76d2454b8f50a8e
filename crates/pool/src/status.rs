//! What can be seen of a pool.

use std::time::Instant;

/// The state of a pool at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Requests that wait.
    pub queued: u32,
    /// Bytes that they hold.
    pub queued_bytes: usize,
    /// Since when the oldest of them waits.
    pub oldest: Option<Instant>,
    /// Workers that were started and are not ready yet.
    pub starting: u32,
    /// Workers that are ready and have nothing to do.
    pub idle: u32,
    /// Workers that are ready and have something to do.
    pub busy: u32,
    /// Workers that get nothing more and are not gone yet.
    pub retiring: u32,
    /// Slots in use, those of retiring workers included.
    pub slots_in_use: u32,
    /// Whether the circuit is open: no worker is ready, the last ones failed in a row, and
    /// requests are refused at once.
    pub open: bool,
    /// No worker is started before this, because one failed.
    pub next_start: Option<Instant>,
}

/// What a pool has counted since it was made. Plain integers of its own thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests taken in.
    pub admitted: u64,
    /// Requests handed to a worker.
    pub dispatched: u64,
    /// Batches handed to a worker, one a slot.
    pub batches: u64,
    /// Requests that came back because they never reached their worker.
    pub returned: u64,
    /// Requests that were given up while they waited.
    pub abandoned: u64,
    /// Requests refused on arrival.
    pub refused: u64,
    /// Requests refused after they had been taken in.
    pub expired: u64,
    /// Workers started.
    pub started: u64,
    /// Starts that failed, and workers that lived shorter than they should.
    pub failures: u64,
    /// Workers ended because they were not needed.
    pub stopped: u64,
    /// Events for workers that are gone or cannot have them; they were ignored.
    pub stale: u64,
}
