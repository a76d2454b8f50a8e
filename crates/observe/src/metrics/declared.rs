//! Every number of a listener, a pool and the shard, declared once: its field, its kind, how the shards' values are
//! summed, its name in the Prometheus text format, and its help text, which also documents the field.

use super::ends::ENDS;
use super::histogram::PublishedHistogram;
use super::published::{AddEach, Published};
use crate::closings::Closings;
use crate::rejections::Rejections;
use exchange::Cause;

/// A metric with one value for each listener, for each pool, or for the shard.
pub(super) struct Family<T> {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) help: &'static str,
    pub(super) of: fn(&T) -> &Published,
}

/// Declares a struct of metrics, its families in the order of the page, and the sum over shards: `add`, or `at_least`
/// if each shard already publishes the value of all. `labelled` lists fields that the page shows with more labels.
macro_rules! metrics {
    (
        $(#[$about:meta])*
        $Metrics:ident, $FAMILIES:ident {
            $( $(#[$more:meta])* $field:ident: $kind:ident $sum:ident $name:literal $help:literal, )*
        }
        labelled {
            $( $(#[$doc:meta])* $visibility:vis $labelled:ident: $sum_labelled:ident $Type:ty, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $Metrics {
            $( #[doc = $help] $(#[$more])* pub $field: Published, )*
            $( $(#[$doc])* $visibility $labelled: $Type, )*
        }

        pub(super) const $FAMILIES: &[Family<$Metrics>] = &[
            $( Family { name: $name, kind: stringify!($kind), help: $help, of: |it| &it.$field }, )*
        ];

        impl $Metrics {
            /// Adds the metrics of another shard.
            pub(super) fn add(&self, other: &Self) {
                $( self.$field.$sum(&other.$field); )*
                $( self.$labelled.$sum_labelled(&other.$labelled); )*
            }
        }
    };
}

metrics! {
    /// Metrics of one listener.
    ListenerMetrics, LISTENER {
        open: gauge add "roadstead_connections" "Open client connections.",
        accepted: counter add "roadstead_connections_total" "Connections accepted.",
        addresses: gauge add "roadstead_tracked_addresses"
            "Client addresses stored for `per_address`.",
        addresses_forgotten: counter add "roadstead_tracked_addresses_evicted_total"
            "Client addresses dropped early because the table was full.",
        /// Counted once for each second without a free descriptor.
        accept_failed: counter add "roadstead_accept_failures_total"
            "Connections that could not be accepted, for example because no descriptor was left.",
    }
    labelled {
        pub(super) rejections: add [Published; Rejections::WORDS.len()],
        pub(super) closings: add [Published; Closings::WORDS.len()],
        /// Finished requests, by cause.
        pub(super) ends: add Vec<Published>,
    }
}

metrics! {
    /// Metrics of one pool.
    PoolMetrics, POOL {
        requests: counter add "roadstead_requests_total" "Requests given to the pool.",
        queued: gauge add "roadstead_queue_length" "Waiting requests.",
        queued_bytes: gauge add "roadstead_queue_bytes" "Memory of the waiting requests.",
        paused: gauge add "roadstead_paused_clients"
            "Clients that are not read until the queue has room.",
        // Each shard that serves a pool counts all of its workers, and is in fallback when the others are.
        serving: gauge at_least "roadstead_workers_serving"
            "Workers that are healthy and not disabled.",
        checks: counter add "roadstead_health_checks_total" "Active health checks.",
        checks_failed: counter add "roadstead_health_check_failures_total"
            "Failed active health checks.",
        ejections: counter add "roadstead_worker_ejections_total"
            "Outlier ejections by passive health checks.",
        bound: gauge add "roadstead_bound_clients"
            "Clients with session affinity in the table.",
        is_fallback_on: gauge at_least "roadstead_fallback_active"
            "1 while the fallback is active.",
        fallback_activations: counter add "roadstead_fallback_activations_total"
            "Activations of the fallback.",
        fallback: counter add "roadstead_fallback_responses_total"
            "Requests answered by the fallback.",
        passed_on: counter add "roadstead_fallback_requests_forwarded_total"
            "Requests given to the pool that is the fallback of this one.",
        started: counter add "roadstead_worker_starts_total" "Started workers.",
        start_failed: counter add "roadstead_worker_start_failures_total"
            "Workers that could not be started, or servers that could not be reached again.",
        died: counter add "roadstead_worker_failures_total"
            "Workers that ended unexpectedly, or had to be killed.",
        batches: counter add "roadstead_batches_total" "Batches given to workers.",
        discarded: counter add "roadstead_discarded_replies_total"
            "Replies to requests that had ended, and unrequested messages of programs.",
        suspect: counter add "roadstead_suspect_replies_total"
            "Replies that may have reached the wrong client, because their program printed more than it was asked.",
        unrequested: counter add "roadstead_unsolicited_replies_total"
            "Times that a server sent bytes without a request; its connections are then not reused for a while.",
        undelivered: counter add "roadstead_undelivered_replies_total"
            "Replies that were not delivered because they exceeded a limit of their listener.",
        stderr_dropped: counter add "roadstead_stderr_lines_dropped_total"
            "Lines on standard error of programs above the rate of the log.",
        strays: counter add "roadstead_notifications_dropped_total"
            "JSON-RPC notifications of clients that were not passed on, because they cancel or report on a request \
             that is not their own in flight.",
    }
    labelled {
        /// Finished requests, by cause and phase.
        pub(super) ends: add Vec<Published>,
        // As `serving`.
        /// Workers with requests in flight.
        pub busy: at_least Published,
        /// Workers without a request in flight.
        pub idle: at_least Published,
        /// Workers that are starting.
        pub starting: at_least Published,
        /// Workers that are ending.
        pub ending: at_least Published,
        pub(super) request_time: add PublishedHistogram,
        pub(super) queue_time: add PublishedHistogram,
    }
}

metrics! {
    /// Metrics of the shard as a whole.
    ShardMetrics, SHARD {
        // All shards share one log.
        access_log_lost: counter at_least "roadstead_access_log_lines_dropped_total"
            "Lines of the access log that were dropped or could not be written.",
        turns: counter add "roadstead_loop_iterations_total" "Iterations of the event loops.",
        exchanges: gauge add "roadstead_requests_in_flight" "Requests in progress.",
        draining: gauge at_least "roadstead_draining" "1 during a graceful shutdown.",
        // Each shard publishes the memory of all shards, as of its last turn.
        memory: gauge at_least "roadstead_memory_bytes"
            "Memory of queues, output, held replies, messages between shards and read buffers.",
        memory_max: gauge at_least "roadstead_memory_limit_bytes" "The limit `memory_max`.",
        memory_over: gauge at_least "roadstead_memory_over_limit"
            "1 while new requests are rejected because `memory_max` was exceeded.",
        memory_exceeded: counter at_least "roadstead_memory_limit_exceeded_total"
            "Times `memory_max` was exceeded.",
        supervisor_lost: counter add "roadstead_supervisor_restarts_total"
            "Times that the supervisor of the programs was lost and started again.",
    }
    labelled {}
}

impl ListenerMetrics {
    pub(super) fn new() -> Self {
        Self { ends: zeroed(Cause::ALL.len()), ..Self::default() }
    }

    /// Publishes the counts of rejected connections and datagrams.
    pub fn set_rejections(&self, rejections: &Rejections) {
        for (place, &count) in self.rejections.iter().zip(rejections.counts()) {
            place.set(count);
        }
    }

    /// Publishes the counts of closed connections.
    pub fn set_closings(&self, closings: &Closings) {
        for (place, &count) in self.closings.iter().zip(closings.counts()) {
            place.set(count);
        }
    }
}

impl PoolMetrics {
    pub(super) fn new() -> Self {
        Self { ends: zeroed(ENDS), ..Self::default() }
    }
}

fn zeroed(count: usize) -> Vec<Published> {
    (0..count).map(|_| Published::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The families whose values are not added over shards 1 and 2, which publish 2 and 3.
    fn not_added<T>(families: &[Family<T>], new: fn() -> T, add: fn(&T, &T)) -> Vec<&'static str> {
        let [sum, one, two] = [new(), new(), new()];
        for family in families {
            (family.of)(&one).set(2);
            (family.of)(&two).set(3);
        }
        add(&sum, &one);
        add(&sum, &two);
        let value = |family: &Family<T>| (family.of)(&sum).load();
        assert!(families.iter().all(|it| matches!(value(it), 3 | 5)));
        families.iter().filter(|it| value(it) == 3).map(|it| it.name).collect()
    }

    #[test]
    fn values_of_all_shards_are_not_added() {
        let listener = not_added(LISTENER, ListenerMetrics::new, ListenerMetrics::add);
        assert!(listener.is_empty(), "{listener:?}");
        let pool = not_added(POOL, PoolMetrics::new, PoolMetrics::add);
        assert_eq!(pool, ["roadstead_workers_serving", "roadstead_fallback_active"]);
        let shard = not_added(SHARD, ShardMetrics::default, ShardMetrics::add);
        let of_all = [
            "roadstead_access_log_lines_dropped_total",
            "roadstead_draining",
            "roadstead_memory_bytes",
            "roadstead_memory_limit_bytes",
            "roadstead_memory_over_limit",
            "roadstead_memory_limit_exceeded_total",
        ];
        assert_eq!(shard, of_all);
    }

    #[test]
    fn labelled_values_are_summed() {
        let [sum, one, two] = [PoolMetrics::new(), PoolMetrics::new(), PoolMetrics::new()];
        for (metrics, value) in [(&one, 2), (&two, 3)] {
            metrics.ends[ENDS - 1].set(value);
            metrics.busy.set(value);
            metrics.queue_time.sum_us.set(value);
            sum.add(metrics);
        }
        let sums = [&sum.ends[ENDS - 1], &sum.busy, &sum.queue_time.sum_us];
        assert_eq!(sums.map(Published::load), [5, 3, 5]);
    }
}
