//! Counters that others may read while the shard runs.
//!
//! The shard counts in plain integers and stores them here once a turn; each place has one writer,
//! so nothing is added atomically. Readers only load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, End, ListenerId, Phase, PoolId, Table, TableId};

use crate::closings::Closings;
use crate::rejections::Rejections;

mod published;
mod rejects;
mod render;
mod sum;

pub use published::Published;
pub use rejects::RejectReasons;
pub use rejects::{PublishedRejects, Rejects};

/// Upper bounds of the histograms' buckets, in microseconds; the last bucket has none.
const BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// How long something took, in buckets.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: [u64; BOUNDS_US.len() + 1],
    /// Buckets that were not published since they changed, a bit each.
    changed: u16,
    sum_us: u64,
}

const _: () = assert!(BOUNDS_US.len() < 16, "a bit for each bucket");

impl Histogram {
    pub fn record(&mut self, took: Duration) {
        self.record_all(took, 1);
    }

    /// So many that took as long.
    fn record_all(&mut self, took: Duration, count: u64) {
        let us = u64::from(took.subsec_micros())
            .saturating_add(took.as_secs().saturating_mul(1_000_000));
        let bucket = BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(BOUNDS_US.len());
        self.buckets[bucket] += count;
        self.changed |= 1 << bucket;
        self.sum_us = self.sum_us.saturating_add(us.saturating_mul(count));
    }
}

#[derive(Debug, Default)]
struct PublishedHistogram {
    buckets: [Published; BOUNDS_US.len() + 1],
    sum_us: Published,
}

impl PublishedHistogram {
    fn set(&self, histogram: &mut Histogram) {
        let mut changed = std::mem::take(&mut histogram.changed);
        while changed != 0 {
            let bucket = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.buckets[bucket].set(histogram.buckets[bucket]);
        }
        self.sum_us.set(histogram.sum_us);
    }

    fn add(&self, other: &Self) {
        for (place, more) in self.buckets.iter().zip(&other.buckets) {
            place.add(more);
        }
        self.sum_us.add(&other.sum_us);
    }
}

/// Everything a shard counts.
#[derive(Debug)]
pub struct Metrics {
    listeners: Named<ListenerId, ListenerMetrics>,
    pools: Named<PoolId, PoolMetrics>,
    shard: ShardMetrics,
    /// Messages that broke a rule of HTTP.
    rejects: PublishedRejects,
}

/// What is counted of one listener.
#[derive(Debug, Default)]
pub struct ListenerMetrics {
    pub open: Published,
    pub accepted: Published,
    pub(super) turned: [Published; Rejections::WORDS.len()],
    pub addresses: Published,
    pub addresses_forgotten: Published,
    pub accept_failed: Published,
    pub(super) closings: [Published; Closings::WORDS.len()],
    /// Finished requests, by cause.
    ends: Vec<Published>,
}

impl ListenerMetrics {
    fn new() -> Self {
        Self { ends: Cause::ALL.iter().map(|_| Published::default()).collect(), ..Self::default() }
    }

    pub fn set_rejections(&self, turned: &Rejections) {
        for (place, &count) in self.turned.iter().zip(turned.counts()) {
            place.set(count);
        }
    }

    pub fn set_closings(&self, closings: &Closings) {
        for (place, &count) in self.closings.iter().zip(closings.counts()) {
            place.set(count);
        }
    }
}

/// What is counted of one pool.
#[derive(Debug, Default)]
pub struct PoolMetrics {
    ends: Vec<Published>,
    pub requests: Published,
    pub queued: Published,
    pub queued_bytes: Published,
    pub paused: Published,
    pub busy: Published,
    pub idle: Published,
    pub starting: Published,
    pub ending: Published,
    pub serving: Published,
    pub checks: Published,
    pub checks_failed: Published,
    pub ejections: Published,
    pub bound: Published,
    pub is_sorry: Published,
    pub became_sorry: Published,
    pub sorry: Published,
    pub passed_on: Published,
    pub started: Published,
    pub start_failed: Published,
    pub died: Published,
    pub batches: Published,
    pub discarded: Published,
    pub suspect: Published,
    pub unrequested: Published,
    pub undelivered: Published,
    pub stderr_dropped: Published,
    pub strays: Published,
    request_time: PublishedHistogram,
    queue_time: PublishedHistogram,
}

/// What is counted of the shard as a whole.
#[derive(Debug, Default)]
pub struct ShardMetrics {
    pub turns: Published,
    pub exchanges: Published,
    pub draining: Published,
    pub keeper_lost: Published,
    pub access_log_lost: Published,
    pub memory: Published,
    pub memory_max: Published,
    pub memory_over: Published,
    pub memory_exceeded: Published,
}

/// The shard's own side of a [`PoolMetrics`].
#[derive(Debug, Default)]
pub struct PoolCounts {
    ends: Ends,
    pub requests: u64,
    pub started: u64,
    pub start_failed: u64,
    pub died: u64,
    pub batches: u64,
    pub discarded: u64,
    /// Replies of programs that printed more than they were asked, since their last passed check.
    pub suspect: u64,
    /// Times that a server was found to have sent bytes that no request asked for.
    pub unrequested: u64,
    pub undelivered: u64,
    pub stderr_dropped: u64,
    pub strays: u64,
    pub sorry: u64,
    pub passed_on: u64,
    pub request_time: Histogram,
    queue_time: Histogram,
    queued: Queued,
}

/// Requests that were given to workers at one moment, after they had waited since another: rows of a
/// batch most often came together.
#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    /// Since when, and up to when.
    span: Option<(Instant, Instant)>,
    count: u64,
}

const ENDS: usize = Cause::ALL.len() * Phase::ALL.len();

fn end_place(end: End) -> usize {
    end.cause as usize * Phase::ALL.len() + end.phase as usize
}

/// How many requests ended in each way. There are some hundred ways and a turn sees one or two of
/// them, so what changed is remembered, a bit each.
#[derive(Debug)]
struct Ends {
    counts: Vec<u64>,
    changed: [u64; ENDS.div_ceil(64)],
}

impl Default for Ends {
    fn default() -> Self {
        Self { counts: vec![0; ENDS], changed: [0; ENDS.div_ceil(64)] }
    }
}

impl Ends {
    fn count(&mut self, place: usize, count: u64) {
        self.counts[place] += count;
        self.changed[place / 64] |= 1 << (place % 64);
    }

    fn publish(&mut self, to: &[Published]) {
        for (word, bits) in self.changed.iter_mut().enumerate() {
            while *bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                to[place].set(self.counts[place]);
                *bits &= *bits - 1;
            }
        }
    }
}

/// The shard's own side of the finished requests of a listener, by cause.
#[derive(Debug)]
pub struct ListenerEnds {
    counts: [u64; Cause::ALL.len()],
    /// Counts that were not published since they changed, a bit each.
    changed: u64,
}

const _: () = assert!(Cause::ALL.len() <= 64, "a bit for each cause");

impl Default for ListenerEnds {
    fn default() -> Self {
        Self { counts: [0; Cause::ALL.len()], changed: 0 }
    }
}

impl ListenerEnds {
    pub fn count(&mut self, end: End, count: u64) {
        let place = end.cause as usize;
        self.counts[place] += count;
        self.changed |= 1 << place;
    }

    pub fn publish(&mut self, to: &ListenerMetrics) {
        while self.changed != 0 {
            let place = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            to.ends[place].set(self.counts[place]);
        }
    }
}

impl PoolCounts {
    pub fn count(&mut self, end: End) {
        self.ends.count(end_place(end), 1);
    }

    /// A request that waited since `since` is given to a worker now.
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

    /// So many requests that ended alike, and took as long from their receipt.
    pub fn count_all(&mut self, end: End, took: Duration, count: u64) {
        self.ends.count(end_place(end), count);
        self.request_time.record_all(took, count);
    }

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
        to.sorry.set(self.sorry);
        to.passed_on.set(self.passed_on);
        to.request_time.set(&mut self.request_time);
        to.queue_time.set(&mut self.queue_time);
    }
}

/// Metrics with the names that they are published by. The ids are those of the fleet, which gives them in the
/// order of the configuration as well.
type Named<I, T> = Table<I, (String, T)>;

fn named<I: TableId, T>(names: impl Iterator<Item = String>, make: fn() -> T) -> Named<I, T> {
    let mut table = Table::default();
    names.for_each(|name| _ = table.insert((name, make())));
    table
}

impl Metrics {
    /// Places for these listeners and pools, by their names and in the order of their ids.
    #[must_use]
    pub fn new(listeners: Vec<String>, pools: Vec<String>, reasons: &RejectReasons) -> Self {
        Self {
            listeners: named(listeners.into_iter(), ListenerMetrics::new),
            pools: named(pools.into_iter(), PoolMetrics::new),
            shard: ShardMetrics::default(),
            rejects: PublishedRejects::new(reasons),
        }
    }

    /// The numbers of several shards, added up. What is counted in workers is what the shard that
    /// has most of them says.
    ///
    /// # Panics
    /// When there is none, or they are of several configurations.
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

    /// The places of malformed messages.
    pub const fn rejects(&self) -> &PublishedRejects {
        &self.rejects
    }

    pub fn listener(&self, id: ListenerId) -> &ListenerMetrics {
        &self.listeners[id].1
    }

    pub fn pool(&self, id: PoolId) -> &PoolMetrics {
        &self.pools[id].1
    }

    pub fn shard(&self) -> &ShardMetrics {
        &self.shard
    }
}

impl PoolMetrics {
    fn new() -> Self {
        Self { ends: (0..ENDS).map(|_| Published::default()).collect(), ..Self::default() }
    }
}
