//! The settings of one pool.

use std::time::Duration;

use elastic::Sizing;

use crate::affinity::AffinityLimits;
use crate::fallback::FallbackSettings;
use crate::health::HealthSettings;

/// The settings of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Slots of each worker: the number of batches that may be in flight to it. At least 1.
    pub slots: u32,
    /// The size of a batch.
    pub batch: Batching,
    /// How many requests may wait, and how long.
    pub queue: QueueLimits,
    /// How the next worker is chosen among the free ones.
    pub schedule: Schedule,
    /// The number of workers.
    pub sizing: Sizing,
    /// The back-off after workers fail to start or end early.
    pub backoff: BackoffSettings,
    /// The maximum number of slots in use, over all workers; `None`: no limit.
    pub slots_all: Option<u32>,
    /// The workers, if each has a name (servers). Then `sizing` is fixed at their number. Empty: workers are
    /// interchangeable and are started and stopped as needed.
    pub members: Vec<Member>,
    /// The time over which the weight of a worker rises to its full value after it starts or becomes healthy again.
    pub slow_start: Duration,
    /// Session affinity: how clients are bound to workers; `None`: they are not.
    pub sticky: Option<Sticky>,
    /// When a worker counts as unhealthy and receives no requests.
    pub health: HealthSettings,
    /// How long requests wait while no worker is available, before they are rejected. It is also how long requests of a
    /// bound client wait for its worker, before they are given to another.
    pub hold: Duration,
    /// When the fallback is switched on; `None`: only by an operator.
    pub fallback: Option<FallbackSettings>,
    /// The waiting time that one level of priority is worth.
    pub priority_step: Duration,
    /// The number of recent decisions that are kept for `why`.
    pub decisions: u32,
    /// When a healthy worker is replaced.
    pub recycle: RecycleSettings,
}

impl Settings {
    /// Returns these settings with every number brought into its range.
    ///
    /// `batch.timeout` is limited to half of `queue.timeout`. So a batch that waits for more requests is dispatched before
    /// its oldest request would be rejected.
    #[must_use]
    pub(crate) fn within_limits(mut self) -> Self {
        self.slots = self.slots.max(1);
        self.batch.rows = self.batch.rows.max(1);
        self.batch.wait = self.batch.wait.min(self.queue.wait / 2);
        if let Ok(members @ 1..) = u32::try_from(self.members.len()) {
            self.sizing = self.sizing.fixed_at(members);
        }
        for member in &mut self.members {
            member.weight = member.weight.min(WEIGHT_MAX);
            member.slots = member.slots.map(|slots| slots.max(1));
        }
        self.sizing = self.sizing.within_limits();
        self.slots_all = self.slots_all.map(|slots| slots.max(1));
        self.decisions = self.decisions.min(DECISIONS_MAX);
        self.backoff.open_after = self.backoff.open_after.max(1);
        self.backoff.max = self.backoff.max.max(self.backoff.first);
        self
    }
}

impl Default for Settings {
    /// One worker, which receives one request at a time.
    fn default() -> Self {
        Self {
            slots: 1,
            batch: Batching::default(),
            queue: QueueLimits::default(),
            schedule: Schedule::RoundRobin,
            sizing: Sizing::default(),
            backoff: BackoffSettings::default(),
            slots_all: None,
            members: Vec::new(),
            slow_start: Duration::ZERO,
            sticky: None,
            health: HealthSettings::default(),
            hold: Duration::ZERO,
            fallback: None,
            priority_step: Duration::from_secs(1),
            decisions: 256,
            recycle: RecycleSettings::default(),
        }
    }
}

/// The size of a batch: the number of requests that one slot receives together. A batch is dispatched when a slot is
/// free and one of these holds: `rows` or `bytes` are reached, its oldest request has waited for `wait`, or the pool
/// drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// The maximum number of requests in a batch; 1 for workers that take one request at a time. At least 1.
    pub rows: u32,
    /// The maximum bytes that the requests of a batch hold. A single request is never too large for a batch.
    pub bytes: usize,
    /// How long an incomplete batch waits for more requests; zero: it does not wait.
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
/// A request that finds a free slot does not wait and does not count against these limits. Requests that never reached
/// their worker return to the queue even beyond the limits. Their number is limited by the slots that they had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The maximum number of waiting requests.
    pub length: u32,
    /// The maximum bytes that they hold.
    pub bytes: usize,
    /// How long a request may wait before it is rejected.
    pub wait: Duration,
}

impl QueueLimits {
    /// The number of waiting requests at which pausable clients are paused. It is large enough for a full batch.
    pub(crate) fn pause_length(self, batch: Batching) -> u32 {
        (self.length - self.length / 4).max(batch.rows.min(self.length)).max(1)
    }

    /// The bytes of waiting requests at which pausable clients are paused.
    pub(crate) const fn pause_bytes(self) -> usize {
        self.bytes - self.bytes / 4
    }
}

impl Default for QueueLimits {
    /// 1,000 requests with 16 MiB together, for 5 seconds.
    fn default() -> Self {
        Self { length: 1000, bytes: 16 << 20, wait: Duration::from_secs(5) }
    }
}

/// How the next worker is chosen among the free ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// In turn. If the weights differ or workers have a slow start, in proportion to the weights.
    RoundRobin,
    /// In turn, in proportion to the weights, evenly spread.
    WeightedRoundRobin,
    /// The worker with the fewest slots in use relative to its weight. Ties are resolved in turn.
    LeastRequests,
    /// Two workers are drawn by weight. The one with fewer slots in use relative to its weight is chosen.
    PowerOfTwo,
    /// Drawn by weight.
    Random,
    /// The worker that the key of the request hashes to, unless its load is above 5/4 of its share.
    Hash,
    /// The first worker that has a free slot.
    First,
}

impl Schedule {
    /// All schedules.
    pub const ALL: &[Self] = &[
        Self::RoundRobin,
        Self::WeightedRoundRobin,
        Self::LeastRequests,
        Self::PowerOfTwo,
        Self::Random,
        Self::Hash,
        Self::First,
    ];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::WeightedRoundRobin => "round-robin",
            Self::LeastRequests => "least-requests",
            Self::PowerOfTwo => "power-of-two",
            Self::Random => "random",
            Self::Hash => "hash",
            Self::First => "first",
        }
    }
}

/// The maximum weight.
pub const WEIGHT_MAX: u32 = 256;
/// The maximum number of decisions that are kept.
const DECISIONS_MAX: u32 = 1 << 20;

/// A worker with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name. It is unique in its pool and stays the same across restarts.
    pub name: String,
    /// The weight, up to [`WEIGHT_MAX`]. With weight 0 the worker serves only the clients that are bound to it.
    pub weight: u32,
    /// Whether the worker serves only while no other worker is available.
    pub backup: bool,
    /// The slots of this worker, if they differ from those of the pool.
    pub slots: Option<u32>,
}

impl Member {
    /// A member with weight 1.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), weight: 1, backup: false, slots: None }
    }
}

/// How clients are bound to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// The maximum number of bound clients, and how long they stay bound.
    pub limits: AffinityLimits,
    /// What happens to a client whose worker is gone.
    pub gone: Gone,
    /// Other daemons share the table. Its keys must be those of [`shared_key`](crate::shared_key).
    pub shared: bool,
}

/// What happens to a client whose worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// The client is bound to another worker.
    Reschedule,
    /// Requests of the client are rejected until its binding expires.
    Refuse,
}

/// When a healthy worker is replaced. It is replaced between requests, and only once another worker is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecycleSettings {
    /// The number of requests after which a worker is replaced.
    pub requests: Option<u64>,
    /// The time after which a ready worker is replaced.
    pub age: Option<Duration>,
    /// The memory, in bytes, above which a worker is replaced ([`handle_memory`](crate::Pool::handle_memory)).
    pub memory: Option<u64>,
    /// The percentage by which each of these limits may be reduced at random for one worker, up to 100.
    pub jitter: u32,
    /// The percentage of the ready workers that may be replaced at the same time; at least one worker.
    pub share: u32,
}

impl Default for RecycleSettings {
    /// Never.
    fn default() -> Self {
        Self { requests: None, age: None, memory: None, jitter: 15, share: 20 }
    }
}

/// The back-off after workers fail to start or end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffSettings {
    /// The first delay. It doubles with each failure.
    pub first: Duration,
    /// The maximum delay.
    pub max: Duration,
    /// The minimum uptime. A worker that was ready for less than this has failed.
    pub min_uptime: Duration,
    /// The number of failures in a row that opens the circuit breaker: while no worker is ready, requests are rejected
    /// immediately. At least 1.
    pub open_after: u32,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            max: Duration::from_secs(30),
            min_uptime: Duration::from_secs(1),
            open_after: 5,
        }
    }
}
