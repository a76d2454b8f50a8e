//! Counters that others may read while the shard runs.
//!
//! The shard counts in plain integers and stores them here once a turn; each place has one writer,
//! so nothing is added atomically. Readers only load. [`Metrics::render`] is the Prometheus text
//! format, version 0.0.4.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exchange::{Cause, End, Phase};
use settings::Configuration;

/// A number with one writer.
#[derive(Debug, Default)]
pub struct Published(AtomicU64);

impl Published {
    /// Stores the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number as it was last stored.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the histograms' buckets, in microseconds; the last bucket has none.
const BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// How long something took, in buckets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    buckets: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Histogram {
    pub(crate) fn record(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.iter().position(|&bound| us <= bound).unwrap_or(BOUNDS_US.len());
        self.buckets[bucket] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }
}

#[derive(Debug, Default)]
struct PublishedHistogram {
    buckets: [Published; BOUNDS_US.len() + 1],
    sum_us: Published,
}

impl PublishedHistogram {
    fn set(&self, histogram: &Histogram) {
        for (place, &count) in self.buckets.iter().zip(&histogram.buckets) {
            place.set(count);
        }
        self.sum_us.set(histogram.sum_us);
    }
}

/// Everything a shard counts.
#[derive(Debug)]
pub struct Metrics {
    listeners: Vec<(String, ListenerMetrics)>,
    pools: Vec<(String, PoolMetrics)>,
    shard: ShardMetrics,
}

/// What is counted of one listener.
#[derive(Debug, Default)]
pub(crate) struct ListenerMetrics {
    pub(crate) open: Published,
    pub(crate) accepted: Published,
    pub(crate) refused: Published,
    pub(crate) accept_failed: Published,
    pub(crate) stalled: Published,
}

/// What is counted of one pool.
#[derive(Debug, Default)]
pub(crate) struct PoolMetrics {
    ends: Vec<Published>,
    pub(crate) requests: Published,
    pub(crate) queued: Published,
    pub(crate) queued_bytes: Published,
    pub(crate) busy: Published,
    pub(crate) idle: Published,
    pub(crate) starting: Published,
    pub(crate) ending: Published,
    pub(crate) started: Published,
    pub(crate) start_failed: Published,
    pub(crate) died: Published,
    pub(crate) batches: Published,
    pub(crate) discarded: Published,
    pub(crate) stderr_dropped: Published,
    request_time: PublishedHistogram,
    queue_time: PublishedHistogram,
}

/// What is counted of the shard as a whole.
#[derive(Debug, Default)]
pub(crate) struct ShardMetrics {
    pub(crate) turns: Published,
    pub(crate) exchanges: Published,
    pub(crate) draining: Published,
    pub(crate) keeper_lost: Published,
}

/// The shard's own side of a [`PoolMetrics`].
#[derive(Debug)]
pub(crate) struct PoolCounts {
    ends: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) started: u64,
    pub(crate) start_failed: u64,
    pub(crate) died: u64,
    pub(crate) batches: u64,
    pub(crate) discarded: u64,
    pub(crate) stderr_dropped: u64,
    pub(crate) request_time: Histogram,
    pub(crate) queue_time: Histogram,
}

const ENDS: usize = Cause::ALL.len() * Phase::ALL.len();

fn end_place(end: End) -> usize {
    end.cause as usize * Phase::ALL.len() + end.phase as usize
}

impl Default for PoolCounts {
    fn default() -> Self {
        Self {
            ends: vec![0; ENDS],
            requests: 0,
            started: 0,
            start_failed: 0,
            died: 0,
            batches: 0,
            discarded: 0,
            stderr_dropped: 0,
            request_time: Histogram::default(),
            queue_time: Histogram::default(),
        }
    }
}

impl PoolCounts {
    pub(crate) fn count(&mut self, end: End) {
        self.ends[end_place(end)] += 1;
    }

    /// Ends that were neither answers nor the client's own leaving.
    #[cfg(test)]
    pub(crate) fn ended(&self, end: End) -> u64 {
        self.ends[end_place(end)]
    }

    pub(crate) fn publish(&self, to: &PoolMetrics) {
        for (place, &count) in to.ends.iter().zip(&self.ends) {
            place.set(count);
        }
        to.requests.set(self.requests);
        to.started.set(self.started);
        to.start_failed.set(self.start_failed);
        to.died.set(self.died);
        to.batches.set(self.batches);
        to.discarded.set(self.discarded);
        to.stderr_dropped.set(self.stderr_dropped);
        to.request_time.set(&self.request_time);
        to.queue_time.set(&self.queue_time);
    }
}

impl Metrics {
    /// Places for every listener and pool of the configuration.
    #[must_use]
    pub fn new(configuration: &Configuration) -> Self {
        let listeners = configuration.listeners.iter();
        let pools = configuration.pools.iter();
        Self {
            listeners: listeners.map(|it| (it.name.clone(), ListenerMetrics::default())).collect(),
            pools: pools.map(|it| (it.name.clone(), PoolMetrics::new())).collect(),
            shard: ShardMetrics::default(),
        }
    }

    pub(crate) fn listener(&self, place: usize) -> &ListenerMetrics {
        &self.listeners[place].1
    }

    pub(crate) fn pool(&self, place: usize) -> &PoolMetrics {
        &self.pools[place].1
    }

    pub(crate) fn shard(&self) -> &ShardMetrics {
        &self.shard
    }

    /// All numbers in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::default();
        self.render_listeners(&mut page);
        self.render_pools(&mut page);
        self.render_ends(&mut page);
        let histograms: [(&str, &str, fn(&PoolMetrics) -> &PublishedHistogram); 2] = [
            ("roadstead_request_seconds", "From receipt to end.", |it| &it.request_time),
            ("roadstead_queue_seconds", "From admission to dispatch.", |it| &it.queue_time),
        ];
        for (name, help, of) in histograms {
            page.head(name, "histogram", help);
            for (pool, metrics) in &self.pools {
                page.histogram(name, pool, of(metrics));
            }
        }
        let shard: [(&str, &str, &str, &Published); 4] = [
            ("roadstead_turns_total", "counter", "Turns of the loop.", &self.shard.turns),
            ("roadstead_exchanges", "gauge", "Requests on their way.", &self.shard.exchanges),
            ("roadstead_draining", "gauge", "1 while the daemon drains.", &self.shard.draining),
            (
                "roadstead_keeper_lost_total",
                "counter",
                "Times the keeper of the programs was lost and started again.",
                &self.shard.keeper_lost,
            ),
        ];
        for (name, kind, help, value) in shard {
            page.head(name, kind, help);
            page.line(name, "", value.load());
        }
        page.0
    }

    fn render_listeners(&self, page: &mut Page) {
        let families: [(&str, &str, &str, fn(&ListenerMetrics) -> &Published); 5] = [
            ("roadstead_connections", "gauge", "Open client connections.", |it| &it.open),
            ("roadstead_connections_total", "counter", "Connections accepted.", |it| &it.accepted),
            (
                "roadstead_connections_refused_total",
                "counter",
                "Connections over the listener's limit.",
                |it| &it.refused,
            ),
            (
                "roadstead_accept_failed_total",
                "counter",
                "Seconds in which no connection could be accepted for want of descriptors.",
                |it| &it.accept_failed,
            ),
            (
                "roadstead_clients_stalled_total",
                "counter",
                "Clients cut because they took none of their replies.",
                |it| &it.stalled,
            ),
        ];
        for (name, kind, help, of) in families {
            page.head(name, kind, help);
            for (listener, metrics) in &self.listeners {
                let labels = format!("{{listener=\"{listener}\"}}");
                page.line(name, &labels, of(metrics).load());
            }
        }
    }

    fn render_pools(&self, page: &mut Page) {
        let families: [(&str, &str, &str, fn(&PoolMetrics) -> &Published); 9] = [
            ("roadstead_requests_total", "counter", "Requests given to the pool.", |it| {
                &it.requests
            }),
            ("roadstead_queue_length", "gauge", "Requests that wait.", |it| &it.queued),
            ("roadstead_queue_bytes", "gauge", "Bytes that they hold.", |it| &it.queued_bytes),
            ("roadstead_worker_starts_total", "counter", "Workers started.", |it| &it.started),
            (
                "roadstead_worker_start_failures_total",
                "counter",
                "Workers that could not be started.",
                |it| &it.start_failed,
            ),
            (
                "roadstead_worker_deaths_total",
                "counter",
                "Workers that ended without being asked to, or had to be ended.",
                |it| &it.died,
            ),
            ("roadstead_batches_total", "counter", "Batches handed to handlers.", |it| &it.batches),
            (
                "roadstead_replies_discarded_total",
                "counter",
                "Replies to requests that had ended, and replies nobody asked for.",
                |it| &it.discarded,
            ),
            (
                "roadstead_stderr_dropped_total",
                "counter",
                "Lines on the standard error of programs that were over the rate of the log.",
                |it| &it.stderr_dropped,
            ),
        ];
        for (name, kind, help, of) in families {
            page.head(name, kind, help);
            for (pool, metrics) in &self.pools {
                page.line(name, &format!("{{pool=\"{pool}\"}}"), of(metrics).load());
            }
        }
        page.head("roadstead_workers", "gauge", "Workers by state.");
        for (pool, metrics) in &self.pools {
            let states = [
                ("starting", &metrics.starting),
                ("idle", &metrics.idle),
                ("busy", &metrics.busy),
                ("ending", &metrics.ending),
            ];
            for (state, value) in states {
                let labels = format!("{{pool=\"{pool}\",state=\"{state}\"}}");
                page.line("roadstead_workers", &labels, value.load());
            }
        }
    }

    /// Only ends that happened, so that the page stays short.
    fn render_ends(&self, page: &mut Page) {
        page.head("roadstead_ends_total", "counter", "Requests by the way they ended.");
        for (pool, metrics) in &self.pools {
            for &cause in Cause::ALL {
                for &phase in Phase::ALL {
                    let count = metrics.ends[end_place(End::new(cause, phase))].load();
                    if count > 0 {
                        let labels = format!(
                            "{{pool=\"{pool}\",verdict=\"{}\",cause=\"{}\",phase=\"{}\"}}",
                            cause.verdict().word(),
                            cause.word(),
                            phase.word()
                        );
                        page.line("roadstead_ends_total", &labels, count);
                    }
                }
            }
        }
    }
}

impl PoolMetrics {
    fn new() -> Self {
        Self { ends: (0..ENDS).map(|_| Published::default()).collect(), ..Self::default() }
    }
}

/// A page in the text format. Writing to a `String` cannot fail.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn histogram(&mut self, name: &str, pool: &str, histogram: &PublishedHistogram) {
        let mut below = 0;
        for (place, bucket) in histogram.buckets.iter().enumerate() {
            below += bucket.load();
            let bound = BOUNDS_US.get(place).map_or_else(|| "+Inf".to_owned(), |&us| seconds(us));
            let _ = writeln!(self.0, "{name}_bucket{{pool=\"{pool}\",le=\"{bound}\"}} {below}");
        }
        let sum = seconds(histogram.sum_us.load());
        let _ = writeln!(self.0, "{name}_sum{{pool=\"{pool}\"}} {sum}");
        let _ = writeln!(self.0, "{name}_count{{pool=\"{pool}\"}} {below}");
    }
}

/// Microseconds written as seconds, exactly.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(250), "0.00025");
        assert_eq!(seconds(30_000_000), "30");
        assert_eq!(seconds(0), "0");
    }

    #[test]
    fn buckets_count_everything_below_their_bound() {
        let mut histogram = Histogram::default();
        for us in [100, 250, 251, 40_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let published = PublishedHistogram::default();
        published.set(&histogram);
        let mut page = Page::default();
        page.histogram("h", "p", &published);
        assert!(page.0.contains("le=\"0.00025\"} 2\n"));
        assert!(page.0.contains("le=\"30\"} 3\n"));
        assert!(page.0.contains("le=\"+Inf\"} 4\n"));
        assert!(page.0.contains("h_count{pool=\"p\"} 4\n"));
    }
}
