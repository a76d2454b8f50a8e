//! What can be seen of a pool.

use std::time::Instant;

use exchange::{WorkerId, WorkerIndex};

use crate::health::{HealthCause, HealthState};
use crate::sorry::SorryReason;
use crate::worker_table::AdminState;

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
    /// Workers that serve at least those who are bound to them.
    pub serving: u32,
    /// Workers that anybody may be given to, free or not.
    pub candidates: u32,
    /// Whether those are the backup workers.
    pub on_backup: bool,
    /// Why the pool is sorry, and since when; none: it is not.
    pub sorry: Option<(SorryReason, Instant)>,
    /// How often it became sorry.
    pub sorry_times: u64,
    /// Clients that are bound to a worker.
    pub bound: u32,
    /// Clients that had to make room for others before their time.
    pub evicted: u64,
}

/// What a pool takes in from clients that can be made to wait: less than its queue holds, so that
/// those that cannot (HTTP, datagrams, other pools) still find a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Requests.
    pub requests: u32,
    /// Bytes of memory that they may hold.
    pub bytes: usize,
}

impl Room {
    /// Nobody needs to wait: requests are served, or rejected with a reason.
    pub const UNLIMITED: Self = Self { requests: u32::MAX, bytes: usize::MAX };

    /// Whether a request that holds so many bytes fits.
    #[must_use]
    pub const fn fits(self, bytes: usize) -> bool {
        self.requests > 0 && bytes <= self.bytes
    }
}

/// One worker, or one that has a name and does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerView<'a> {
    /// Its index.
    pub index: WorkerIndex,
    /// Its id; none: it does not run.
    pub worker: Option<WorkerId>,
    /// Its name, where it has one.
    pub name: Option<&'a str>,
    /// Its weight in the settings.
    pub weight: u32,
    /// Its weight as set by hand, which holds instead.
    pub weight_set: Option<u32>,
    /// What was said of it by hand.
    pub admin_state: AdminState,
    /// What its checks and requests say.
    pub health: HealthState,
    /// What made it so.
    pub health_cause: HealthCause,
    /// Since when; none: since it is known.
    pub health_since: Option<Instant>,
    /// When its ejection ends.
    pub ejected_until: Option<Instant>,
    /// Whether it serves only when no other is fit.
    pub backup: bool,
    /// Slots in use.
    pub in_use: u32,
    /// Slots; 0 when it serves nobody.
    pub slots: u32,
    /// Requests that wait for it and no other.
    pub waiting: u32,
    /// Why it is given nothing new; none: it is.
    pub out: Option<&'static str>,
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
    /// Requests given to the worker that their client is bound to.
    pub bound: u64,
    /// Workers that became unfit.
    pub unfit: u64,
    /// Of these, those whose requests failed.
    pub ejections: u64,
    /// Workers ended because they were not needed.
    pub stopped: u64,
    /// Workers replaced though nothing was wrong with them.
    pub recycled: u64,
    /// Events for workers that are gone or cannot have them; they were ignored.
    pub stale: u64,
}
