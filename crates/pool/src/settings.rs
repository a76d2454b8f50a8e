//! The settings of one pool.

use std::time::Duration;

use elastic::Sizing;

use crate::affinity::AffinityLimits;
use crate::health::HealthSettings;
use crate::sorry::SorrySettings;

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
    /// Slots of all workers that may be in use at once; none: as many as there are.
    pub slots_all: Option<u32>,
    /// The workers, where each has a name of its own: servers. Then `sizing` is as many as they
    /// are. Empty: workers are alike, and come and go.
    pub members: Vec<Member>,
    /// How long a new worker, or one that was unfit, takes until it is given its whole weight.
    pub slow_start: Duration,
    /// Whether clients are bound to workers.
    pub sticky: Option<Sticky>,
    /// What makes a worker unfit to be given requests.
    pub health: HealthSettings,
    /// How long requests wait while no worker is fit, before they are refused; and those of a
    /// bound client for its worker, before it is given another.
    pub hold: Duration,
    /// When it says that it is sorry; none: only by hand.
    pub sorry: Option<SorrySettings>,
    /// What one level of priority is worth in waiting time.
    pub priority_step: Duration,
    /// Decisions that are kept for `why`.
    pub decisions: u32,
    /// When a worker is replaced though nothing is wrong with it.
    pub recycle: RecycleSettings,
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
        if let Ok(members @ 1..) = u32::try_from(self.members.len()) {
            self.sizing = self.sizing.held_at(members);
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
    /// One worker that takes one request at a time.
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
            sorry: None,
            priority_step: Duration::from_secs(1),
            decisions: 256,
            recycle: RecycleSettings::default(),
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

impl QueueLimits {
    /// Requests that wait when clients that can be made to wait are paused. A batch can still fill.
    pub(crate) fn pause_length(self, batch: Batching) -> u32 {
        (self.length - self.length / 4).max(batch.rows.min(self.length)).max(1)
    }

    /// The same of the bytes that they hold.
    pub(crate) const fn pause_bytes(self) -> usize {
        self.bytes - self.bytes / 4
    }
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
    /// Each in its turn; as often as its weight says once one is heavier than others or workers
    /// start slowly.
    RoundRobin,
    /// Each in its turn, as often as its weight says, evenly spread.
    WeightedRoundRobin,
    /// The one with the fewest slots in use for its weight; among equals each in its turn.
    LeastOutstanding,
    /// Of two drawn by weight, the one with fewer slots in use for its weight.
    TwoChoices,
    /// Drawn by weight.
    Random,
    /// The one that the request's key belongs to, unless it has more than 5/4 of its due.
    Hash,
    /// The first that has a free slot.
    First,
}

impl Schedule {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::RoundRobin,
        Self::WeightedRoundRobin,
        Self::LeastOutstanding,
        Self::TwoChoices,
        Self::Random,
        Self::Hash,
        Self::First,
    ];

    /// Its name, as in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::WeightedRoundRobin => "weighted-round-robin",
            Self::LeastOutstanding => "least-outstanding",
            Self::TwoChoices => "two-choices",
            Self::Random => "random",
            Self::Hash => "hash",
            Self::First => "first",
        }
    }
}

/// The heaviest weight.
pub const WEIGHT_MAX: u32 = 256;
/// The most decisions that are kept.
const DECISIONS_MAX: u32 = 1 << 20;

/// A worker with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it is known by: unique in its pool, the same after a restart.
    pub name: String,
    /// Its weight, up to [`WEIGHT_MAX`]; 0: it keeps the clients that are bound to it and gets no
    /// others.
    pub weight: u32,
    /// Whether it serves only when no other is fit.
    pub backup: bool,
    /// Its slots, where they are not those of the pool.
    pub slots: Option<u32>,
}

impl Member {
    /// One of weight 1 like the others.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), weight: 1, backup: false, slots: None }
    }
}

/// How clients are bound to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// How many, and how long.
    pub limits: AffinityLimits,
    /// What becomes of a client whose worker is gone.
    pub gone: Gone,
}

/// What becomes of a client whose worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is bound to another.
    Reschedule,
    /// Its requests are refused until its time at the worker is over.
    Refuse,
}

/// When a worker is replaced though nothing is wrong with it: between requests, and only once
/// another is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecycleSettings {
    /// After so many requests.
    pub requests: Option<u64>,
    /// When it was ready for so long.
    pub age: Option<Duration>,
    /// When it occupies more than so many bytes
    /// ([`handle_memory`](crate::Pool::handle_memory)).
    pub memory: Option<u64>,
    /// By how many percent each of these may be less for one worker; up to 100.
    pub jitter: u32,
    /// How many percent of the ready workers may be replaced at once; at least one worker.
    pub share: u32,
}

impl Default for RecycleSettings {
    /// Never.
    fn default() -> Self {
        Self { requests: None, age: None, memory: None, jitter: 15, share: 20 }
    }
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
