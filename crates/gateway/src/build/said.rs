//! What the workers of a pool say of it, beside what they are.

use std::time::Duration;

use engine::pool_config::SessionWorkersConfig;

/// What the workers of a pool say of it, beside what they are.
pub(super) struct StartMessages {
    /// Requests that one of them has at once.
    pub(super) slots: u32,
    /// How long one must live to count as having started well.
    pub(super) settle: Duration,
    pub(super) recycle: pool::RecycleSettings,
    pub(super) own: Option<SessionWorkersConfig>,
    /// Those that are there by name.
    pub(super) members: Vec<pool::Member>,
}
