//! The visible state of a pool.

use std::time::Instant;

use exchange::{AdminState, WorkerId, WorkerIndex};

use crate::fallback::FallbackReason;
use crate::health::{HealthCause, HealthState};

/// The current state of a pool.
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
    /// Workers that are ready and idle.
    pub idle: u32,
    /// Workers that are ready and have requests in flight.
    pub busy: u32,
    /// Workers that receive no new requests and have not ended yet.
    pub retiring: u32,
    /// Slots in use, including those of retiring workers.
    pub slots_in_use: u32,
    /// Whether the circuit breaker is open: no worker is ready, the last ones failed in a row, and requests are
    /// rejected immediately.
    pub open: bool,
    /// The earliest time of the next start, if a failure delays it.
    pub next_start: Option<Instant>,
    /// Workers that serve at least the clients that are bound to them.
    pub serving: u32,
    /// Workers that serve any client, whether they have a free slot or not.
    pub candidates: u32,
    /// Whether these candidates are the backup workers.
    pub on_backup: bool,
    /// Why the fallback is on, and since when; `None`: it is off.
    pub fallback: Option<(FallbackReason, Instant)>,
    /// How often the fallback was switched on.
    pub fallback_activations: u64,
    /// Clients that are bound to a worker.
    pub bound: u32,
    /// Clients whose binding was removed early to make room for others.
    pub evicted: u64,
}

/// The capacity of a pool for clients that can be paused. It is less than the queue holds, so that the queue still has
/// room for requests of clients that cannot be paused (HTTP, datagrams, other pools).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Requests.
    pub requests: u32,
    /// Bytes of memory that they may hold.
    pub bytes: usize,
}

impl Room {
    /// No client is paused: requests are served, or rejected with a reason.
    pub const UNLIMITED: Self = Self { requests: u32::MAX, bytes: usize::MAX };

    /// Whether a request that holds this number of bytes fits.
    #[must_use]
    pub const fn fits(self, bytes: usize) -> bool {
        self.requests > 0 && bytes <= self.bytes
    }
}

/// A worker, or a named worker that is not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerView<'a> {
    /// The index of the worker.
    pub index: WorkerIndex,
    /// The id of the worker; `None`: it is not running.
    pub worker: Option<WorkerId>,
    /// The name, if it has one.
    pub name: Option<&'a str>,
    /// The weight in the settings.
    pub weight: u32,
    /// The weight that an operator has set. It replaces the one in the settings.
    pub weight_set: Option<u32>,
    /// The state that an operator has set.
    pub admin_state: AdminState,
    /// The health, according to checks and requests.
    pub health: HealthState,
    /// What caused this health state.
    pub health_cause: HealthCause,
    /// Since when the health state holds; `None`: since the worker was added.
    pub health_since: Option<Instant>,
    /// When its ejection ends.
    pub ejected_until: Option<Instant>,
    /// Whether the worker serves only while no other worker is available.
    pub backup: bool,
    /// Slots in use.
    pub in_use: u32,
    /// Slots; 0 while the worker serves no requests.
    pub slots: u32,
    /// Requests that wait for this worker only.
    pub waiting: u32,
    /// Why the worker receives no new requests; `None`: it receives them.
    pub out: Option<&'static str>,
}

/// The counters of a pool since it was created. They are plain integers of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were admitted.
    pub admitted: u64,
    /// Requests that were dispatched to a worker.
    pub dispatched: u64,
    /// Batches that were dispatched to a worker, one per slot.
    pub batches: u64,
    /// Requests that were returned because they never reached their worker.
    pub returned: u64,
    /// Requests that were abandoned while they waited.
    pub abandoned: u64,
    /// Requests that were rejected on arrival.
    pub refused: u64,
    /// Requests that were rejected after they had been admitted.
    pub expired: u64,
    /// Workers that were started.
    pub started: u64,
    /// Failed starts, and workers that ended before their minimum uptime.
    pub failures: u64,
    /// Requests that were given to the worker that their client is bound to.
    pub bound: u64,
    /// Workers that became unhealthy.
    pub unhealthy: u64,
    /// Those of them that became unhealthy because of failed requests.
    pub ejections: u64,
    /// Workers that were stopped because they were not needed.
    pub stopped: u64,
    /// Healthy workers that were replaced.
    pub recycled: u64,
    /// Events for workers that are gone or whose state does not allow the event. They were ignored.
    pub stale: u64,
}

/// The figures of a pool that are published as metrics. Each has the meaning of the same field of [`Status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is documented at `Status`")]
#[non_exhaustive]
pub struct Gauges {
    pub queued: u32,
    pub queued_bytes: usize,
    pub starting: u32,
    pub idle: u32,
    pub busy: u32,
    pub retiring: u32,
    pub serving: u32,
    pub is_fallback_on: bool,
    pub fallback_activations: u64,
    pub bound: u32,
}
