//! The properties of the workers of a pool that affect the pool.

use std::time::Duration;

use engine::pool_config::SessionWorkersConfig;

/// The properties of the workers of a pool that affect the pool.
pub(super) struct WorkerProperties {
    /// The maximum number of concurrent requests of one worker.
    pub(super) slots: u32,
    /// The minimum uptime after which a start counts as successful.
    pub(super) settle: Duration,
    pub(super) recycle: pool::RecycleSettings,
    pub(super) own: Option<SessionWorkersConfig>,
    /// The workers with names.
    pub(super) members: Vec<pool::Member>,
}
