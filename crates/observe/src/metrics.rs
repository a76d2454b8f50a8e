//! Counters that other threads may read while the shard runs.
//!
//! The shard counts in plain integers and stores them here once per turn. Each counter has only one writer, so plain
//! atomic stores and loads are sufficient.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, End, ListenerId, PoolId, Table, TableId};

mod cluster;
mod declared;
mod ends;
mod histogram;
mod page;
mod published;
mod rejects;
mod render;

pub use cluster::{ClusterCommands, ClusterConnection, ClusterLimits, ClusterMetrics, ClusterPool};
pub use declared::{ListenerMetrics, PoolMetrics, ShardMetrics};
use ends::{Ends, end_place};
pub use histogram::Histogram;
pub use published::Published;
pub use rejects::RejectReasons;
pub use rejects::{PublishedRejects, Rejects};

/// The published metrics of one shard, or the sum of several.
#[derive(Debug)]
pub struct Metrics {
    listeners: Named<ListenerId, ListenerMetrics>,
    pools: Named<PoolId, PoolMetrics>,
    shard: ShardMetrics,
    /// Malformed HTTP messages.
    rejects: PublishedRejects,
}

/// The counters of a pool before they are published. [`Self::publish`] stores them in its [`PoolMetrics`].
#[derive(Debug, Default)]
pub struct PoolCounts {
    ends: Ends,
    /// Requests submitted to the pool.
    pub requests: u64,
    /// Workers started.
    pub started: u64,
    /// Workers that could not be started.
    pub start_failed: u64,
    /// Workers that exited unexpectedly or had to be killed.
    pub died: u64,
    /// Batches sent to workers.
    pub batches: u64,
    /// Replies to requests that had ended, and unsolicited output of programs.
    pub discarded: u64,
    /// Replies that may have reached the wrong client: the replies of a program that wrote too much, since its last
    /// passed check.
    pub suspect: u64,
    /// How often a server sent bytes without a request.
    pub unrequested: u64,
    /// Replies that exceeded a limit of their listener and were not delivered.
    pub undelivered: u64,
    /// Lines on the stderr of programs that exceeded the rate limit of the log.
    pub stderr_dropped: u64,
    /// Notifications of clients that were dropped, because the id in them does not name a request of the same client in
    /// flight.
    pub strays: u64,
    /// Requests answered with the fallback response.
    pub fallback: u64,
    /// Requests that were passed to the fallback pool.
    pub passed_on: u64,
    /// Time from the receipt of a request to its end.
    pub request_time: Histogram,
    queue_time: Histogram,
    queued: Queued,
}

/// Requests that were queued at one time and dispatched at another. The rows of a batch usually arrive together, so
/// they are recorded together.
#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    /// The times of admission and of dispatch.
    span: Option<(Instant, Instant)>,
    count: u64,
}

/// The counters of the finished requests of a listener, by cause, before they are published.
#[derive(Debug)]
pub struct ListenerEnds {
    counts: [u64; Cause::ALL.len()],
    /// Counts that changed since they were published, one bit each.
    changed: u64,
}

const _: () = assert!(Cause::ALL.len() <= 64, "a bit for each cause");

impl Default for ListenerEnds {
    fn default() -> Self {
        Self { counts: [0; Cause::ALL.len()], changed: 0 }
    }
}

impl ListenerEnds {
    /// Counts `count` requests that ended in the same way.
    pub fn count(&mut self, end: End, count: u64) {
        let place = end.cause as usize;
        self.counts[place] += count;
        self.changed |= 1 << place;
    }

    /// Stores the counts that have changed.
    pub fn publish(&mut self, to: &ListenerMetrics) {
        while self.changed != 0 {
            let place = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            to.ends[place].set(self.counts[place]);
        }
    }
}

impl PoolCounts {
    /// Counts a finished request without its duration.
    pub fn count(&mut self, end: End) {
        self.ends.count(end_place(end), 1);
    }

    /// Records the queue time of a request that was admitted at `since` and is dispatched `now`.
    #[inline]
    pub fn count_queued(&mut self, since: Instant, now: Instant) {
        if self.queued.span != Some((since, now)) {
            self.record_queued();
            self.queued.span = Some((since, now));
        }
        self.queued.count += 1;
    }

    fn record_queued(&mut self) {
        let Queued { span, count } = std::mem::take(&mut self.queued);
        if let Some((since, now)) = span {
            self.queue_time.record_all(now.saturating_duration_since(since), count);
        }
    }

    /// Counts `count` requests that ended in the same way, `took` after their receipt.
    pub fn count_all(&mut self, end: End, took: Duration, count: u64) {
        self.ends.count(end_place(end), count);
        self.request_time.record_all(took, count);
    }

    /// Stores all counters.
    pub fn publish(&mut self, to: &PoolMetrics) {
        self.record_queued();
        self.ends.publish(&to.ends);
        to.requests.set(self.requests);
        to.started.set(self.started);
        to.start_failed.set(self.start_failed);
        to.died.set(self.died);
        to.batches.set(self.batches);
        to.discarded.set(self.discarded);
        to.suspect.set(self.suspect);
        to.unrequested.set(self.unrequested);
        to.undelivered.set(self.undelivered);
        to.stderr_dropped.set(self.stderr_dropped);
        to.strays.set(self.strays);
        to.fallback.set(self.fallback);
        to.passed_on.set(self.passed_on);
        to.request_time.set(&mut self.request_time);
        to.queue_time.set(&mut self.queue_time);
    }
}

/// Metrics with their label values. The ids are assigned in the order of the configuration, here as in the fleet.
type Named<I, T> = Table<I, (String, T)>;

fn named<I: TableId, T>(names: impl Iterator<Item = String>, make: fn() -> T) -> Named<I, T> {
    let mut table = Table::default();
    names.for_each(|name| _ = table.insert((name, make())));
    table
}

impl Metrics {
    /// Creates zeroed metrics for these listeners and pools, which are named in the order of their ids.
    #[must_use]
    pub fn new(listeners: Vec<String>, pools: Vec<String>, reasons: &RejectReasons) -> Self {
        Self {
            listeners: named(listeners.into_iter(), ListenerMetrics::new),
            pools: named(pools.into_iter(), PoolMetrics::new),
            shard: ShardMetrics::default(),
            rejects: PublishedRejects::new(reasons),
        }
    }

    /// Returns the sum of several shards. Numbers of workers are not added but their maximum is used, because each
    /// shard counts all workers.
    ///
    /// # Panics
    /// If `all` is empty, or if the metrics belong to different configurations.
    #[must_use]
    pub fn sum(all: &[Arc<Self>]) -> Self {
        let first = all.first().expect("there is a shard");
        let listeners = first.listeners.values().map(|(name, _)| name.clone());
        let pools = first.pools.values().map(|(name, _)| name.clone());
        let sum = Self {
            listeners: named(listeners, ListenerMetrics::new),
            pools: named(pools, PoolMetrics::new),
            shard: ShardMetrics::default(),
            rejects: first.rejects.zero(),
        };
        for one in all {
            sum.rejects.add(&one.rejects);
            for ((_, to), (_, from)) in sum.listeners.values().zip(one.listeners.values()) {
                to.add(from);
            }
            for ((_, to), (_, from)) in sum.pools.values().zip(one.pools.values()) {
                to.add(from);
            }
            sum.shard.add(&one.shard);
        }
        sum
    }

    /// Returns the counters of malformed HTTP messages.
    pub const fn rejects(&self) -> &PublishedRejects {
        &self.rejects
    }

    /// Returns the metrics of a listener.
    ///
    /// # Panics
    /// If no such listener exists.
    pub fn listener(&self, id: ListenerId) -> &ListenerMetrics {
        &self.listeners[id].1
    }

    /// Returns the metrics of a pool.
    ///
    /// # Panics
    /// If no such pool exists.
    pub fn pool(&self, id: PoolId) -> &PoolMetrics {
        &self.pools[id].1
    }

    /// Returns the metrics of the shard as a whole.
    pub fn shard(&self) -> &ShardMetrics {
        &self.shard
    }
}
