//! Sums the metrics of several shards.
//!
//! Each struct is destructured completely, so that a new field does not compile until its aggregation is defined.

use super::{ListenerMetrics, PoolMetrics, ShardMetrics};

impl ListenerMetrics {
    pub(super) fn add(&self, other: &Self) {
        let Self {
            open,
            accepted,
            rejections,
            addresses,
            addresses_forgotten,
            accept_failed,
            closings,
            ends,
        } = other;
        for (to, from) in self.closings.iter().zip(closings) {
            to.add(from);
        }
        for (to, from) in
            self.rejections.iter().chain(&self.ends).zip(rejections.iter().chain(ends))
        {
            to.add(from);
        }
        self.addresses.add(addresses);
        self.addresses_forgotten.add(addresses_forgotten);
        self.open.add(open);
        self.accepted.add(accepted);
        self.accept_failed.add(accept_failed);
    }
}

impl PoolMetrics {
    pub(super) fn add(&self, other: &Self) {
        let Self {
            ends,
            requests,
            queued,
            queued_bytes,
            paused,
            busy,
            idle,
            starting,
            ending,
            serving,
            ejections,
            bound,
            is_fallback_on,
            fallback_activations,
            fallback,
            passed_on,
            started,
            start_failed,
            died,
            batches,
            discarded,
            suspect,
            unrequested,
            undelivered,
            stderr_dropped,
            strays,
            checks,
            checks_failed,
            request_time,
            queue_time,
        } = other;
        for (to, from) in self.ends.iter().zip(ends) {
            to.add(from);
        }
        for (to, from) in [
            (&self.requests, requests),
            (&self.queued, queued),
            (&self.queued_bytes, queued_bytes),
            (&self.paused, paused),
            (&self.ejections, ejections),
            (&self.bound, bound),
            (&self.fallback_activations, fallback_activations),
            (&self.fallback, fallback),
            (&self.passed_on, passed_on),
            (&self.started, started),
            (&self.start_failed, start_failed),
            (&self.died, died),
            (&self.batches, batches),
            (&self.discarded, discarded),
            (&self.suspect, suspect),
            (&self.unrequested, unrequested),
            (&self.undelivered, undelivered),
            (&self.stderr_dropped, stderr_dropped),
            (&self.strays, strays),
            (&self.checks, checks),
            (&self.checks_failed, checks_failed),
        ] {
            to.add(from);
        }
        // Each shard that serves a pool counts all of its workers.
        for (to, from) in [
            (&self.busy, busy),
            (&self.idle, idle),
            (&self.starting, starting),
            (&self.ending, ending),
            (&self.serving, serving),
            (&self.is_fallback_on, is_fallback_on),
        ] {
            to.at_least(from);
        }
        self.request_time.add(request_time);
        self.queue_time.add(queue_time);
    }
}

impl ShardMetrics {
    pub(super) fn add(&self, other: &Self) {
        let Self {
            turns,
            exchanges,
            draining,
            supervisor_lost,
            access_log_lost,
            memory,
            memory_max,
            memory_over,
            memory_exceeded,
        } = other;
        // Each shard publishes the total of all shards, as of its last turn.
        self.memory.at_least(memory);
        self.memory_max.at_least(memory_max);
        self.memory_over.at_least(memory_over);
        self.memory_exceeded.at_least(memory_exceeded);
        self.turns.add(turns);
        self.exchanges.add(exchanges);
        self.draining.at_least(draining);
        self.supervisor_lost.add(supervisor_lost);
        // All shards share one log.
        self.access_log_lost.at_least(access_log_lost);
    }
}
