//! The properties of the workers of a pool that affect the pool.

use std::time::Duration;

use engine::pool_config::SessionWorkersConfig;

/// The properties of the workers of a pool that affect the pool.
pub(super) struct WorkerProperties {
    /// The maximum number of concurrent requests of one worker.
    pub(super) slots: u32,
    /// The minimum uptime after which a start counts as successful.
    pub(super) min_uptime: Duration,
    pub(super) starts: FailedStarts,
    pub(super) recycle: pool::RecycleSettings,
    pub(super) own: Option<SessionWorkersConfig>,
    /// The workers with names.
    pub(super) members: Vec<pool::Member>,
}

/// What follows when workers cannot be started.
#[derive(Clone, Copy)]
pub(super) struct FailedStarts {
    /// The maximum pause before the next start.
    pub(super) pause_max: Duration,
    /// The number of consecutive workers that may fail before requests are rejected immediately.
    pub(super) open_after: u32,
}

impl FailedStarts {
    /// Of programs, servers and handlers: without a change by the operator, the next start is likely to fail as well.
    pub(super) const REJECT: Self = Self { pause_max: Duration::from_secs(30), open_after: 5 };
    /// Of databases: requests wait in the queue until the database can be reached, for at most `queue.timeout`, as they
    /// do when it fails later.
    pub(super) const WAIT: Self = Self { pause_max: Duration::from_secs(1), open_after: u32::MAX };
}
