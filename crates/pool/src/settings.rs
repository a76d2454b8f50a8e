//! The settings of one pool.

use std::time::Duration;

use elastic::Sizing;

/// The settings of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Slots of each worker: batches that it may have in its hands at once. At least 1.
    pub slots: u32,
    /// How many requests one slot takes at once.
    pub batch: Batching,
    /// How many requests may wait, and how long.
    pub queue: QueueLimits,
    /// Which free worker is next.
    pub schedule: Schedule,
    /// How many workers.
    pub sizing: Sizing,
    /// What happens when workers do not start or do not live.
    pub backoff: BackoffSettings,
}

impl Settings {
    /// The same with every number inside its range.
    ///
    /// A batch that waits for more leaves at the latest after half of the time after which its
    /// oldest request would be refused.
    #[must_use]
    pub(crate) fn within_limits(mut self) -> Self {
        self.slots = self.slots.max(1);
        self.batch.rows = self.batch.rows.max(1);
        self.batch.wait = self.batch.wait.min(self.queue.wait / 2);
        self.sizing = self.sizing.within_limits();
        self.backoff.open_after = self.backoff.open_after.max(1);
        self.backoff.max = self.backoff.max.max(self.backoff.first);
        self
    }
}

impl Default for Settings {
    /// One worker that takes one request at a time.
    fn default() -> Self {
        Self {
            slots: 1,
            batch: Batching::default(),
            queue: QueueLimits::default(),
            schedule: Schedule::RoundRobin,
            sizing: Sizing::default(),
            backoff: BackoffSettings::default(),
        }
    }
}

/// How many requests one slot takes at once. A batch leaves when a slot is free and `rows` or
/// `bytes` are reached, or its oldest request waited for `wait`, or the pool drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Requests in a batch; 1 for workers that take one at a time. At least 1.
    pub rows: u32,
    /// Bytes that the requests of a batch hold. One request is never too large for a batch.
    pub bytes: usize,
    /// How long a batch that is not full waits for more; zero: not at all.
    pub wait: Duration,
}

impl Default for Batching {
    /// One request at a time.
    fn default() -> Self {
        Self { rows: 1, bytes: usize::MAX, wait: Duration::ZERO }
    }
}

/// How many requests may wait, and how long.
///
/// A request for which a slot is free does not wait and is not held against these limits. Those
/// that come back from a worker that they never reached are queued even beyond them: there can
/// be no more of them than slots had room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Requests.
    pub length: u32,
    /// Bytes that they hold.
    pub bytes: usize,
    /// How long one may wait before it is refused.
    pub wait: Duration,
}

impl Default for QueueLimits {
    /// A thousand requests of 16 MiB together, for five seconds.
    fn default() -> Self {
        Self { length: 1000, bytes: 16 << 20, wait: Duration::from_secs(5) }
    }
}

/// Which free worker is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each in its turn.
    RoundRobin,
    /// The one with the fewest slots in use; among equals each in its turn.
    LeastOutstanding,
}

/// What happens when workers do not start, or die before they have settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffSettings {
    /// The first delay; it doubles from failure to failure.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
    /// A worker that lived shorter than this was a failure.
    pub settle: Duration,
    /// After so many failures in a row, and with no worker ready, requests are refused at once.
    /// At least 1.
    pub open_after: u32,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            max: Duration::from_secs(30),
            settle: Duration::from_secs(1),
            open_after: 5,
        }
    }
}
