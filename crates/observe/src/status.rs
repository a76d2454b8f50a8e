//! The types of the status that the admin address shows.

use std::time::{Duration, Instant};

/// The status of a shard, or of all shards together.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// All listeners.
    pub listeners: Vec<ListenerStatus>,
    /// All pools.
    pub pools: Vec<PoolStatus>,
    /// The number of requests in flight, including queued ones.
    pub exchanges: usize,
    /// Whether the shard is draining and rejects new requests.
    pub draining: bool,
    /// The number of the shard. For several shards together, the lowest number.
    pub shard: u32,
    /// The memory of the daemon, all shards together.
    pub memory: MemoryStatus,
}

/// The memory use of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStatus {
    /// The number of bytes in queues and buffers.
    pub held: usize,
    /// The limit `memory_max` in bytes.
    pub max: usize,
    /// Whether new requests are rejected because the limit was exceeded.
    pub over: bool,
}

impl Status {
    /// Merges the status of several shards. Each pool is taken from its owner shard, which `owner` returns for its
    /// name. The requests that its workers have in flight from other shards are added. Returns `None` if `all` is
    /// empty.
    pub fn together(mut all: Vec<Self>, owner: impl Fn(&str) -> u32) -> Option<Self> {
        all.sort_by_key(|status| status.shard);
        let mut all = all.into_iter();
        let mut sum = all.next()?;
        let first = sum.shard;
        for other in all {
            sum.exchanges += other.exchanges;
            sum.draining |= other.draining;
            for (listener, more) in sum.listeners.iter_mut().zip(&other.listeners) {
                listener.connections += more.connections;
                listener.accepted += more.accepted;
            }
            for (pool, mut seen) in sum.pools.iter_mut().zip(other.pools) {
                if owner(&seen.name) == other.shard && first != other.shard {
                    std::mem::swap(pool, &mut seen);
                }
                pool.add(&seen);
            }
        }
        Some(sum)
    }
}

/// The status of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerStatus {
    /// The configured name.
    pub name: String,
    /// The number of open connections.
    pub connections: u32,
    /// The number of connections accepted since the start.
    pub accepted: u64,
}

/// The status of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolStatus {
    /// The configured name.
    pub name: String,
    /// The number of requests in the queue.
    pub queued: u32,
    /// Memory of the queued requests, in bytes.
    pub queued_bytes: usize,
    /// The time that the oldest of them has waited.
    pub oldest: Option<Duration>,
    /// Whether requests are rejected because no worker can be started.
    pub down: bool,
    /// The kind of failure, for clients, if `exit_message` allows it.
    pub down_kind: Option<String>,
    /// The failure, for operators: the exit status and last output of the last program, or why it could not be
    /// started.
    pub down_reason: Option<String>,
    /// Set while the pool is in fallback: the reason, and for how long.
    pub fallback: Option<(&'static str, Duration)>,
    /// The number of clients with session affinity to a worker.
    pub bound: u32,
    /// Whether the backup workers are in use.
    pub on_backup: bool,
    /// The workers as the load balancer sees them.
    pub places: Vec<PlaceStatus>,
    /// The workers as the backend sees them.
    pub workers: Vec<WorkerStatus>,
}

impl PoolStatus {
    /// Adds the requests that the workers have in flight from another shard.
    fn add(&mut self, member: &Self) {
        for (place, more) in self.places.iter_mut().zip(&member.places) {
            place.in_use += more.in_use;
            place.tally.add(&more.tally);
        }
        for worker in &mut self.workers {
            if let Some(more) = member.workers.iter().find(|more| more.name == worker.name) {
                worker.in_flight += more.in_flight;
                worker.served += more.served;
            }
        }
    }
}

/// A worker as the load balancer sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceStatus {
    /// The name in commands of `ctl`: the configured name, or the number of the worker.
    pub name: String,
    /// The effective weight: the one set at run time or, if none is set, the configured weight.
    pub weight: u32,
    /// The configured weight.
    pub weight_configured: u32,
    /// The weight that was set at run time.
    pub weight_set: Option<u32>,
    /// The state that an operator set: `enabled`, `drained` or `disabled`.
    pub admin_state: &'static str,
    /// The result of health checks: `up`, `down` or `ejected`.
    pub health: &'static str,
    /// The reason of the last change of `health_check`, and how long ago it was; `None`: no change since the start.
    pub health_since: Option<(&'static str, Duration)>,
    /// The remaining time of an ejection.
    pub ejected_for: Option<Duration>,
    /// The kind of result of the last health check, for clients.
    pub check_kind: Option<String>,
    /// The result of the last health check with the worker's reply, for operators.
    pub check: Option<String>,
    /// The number of slots in use.
    pub in_use: u32,
    /// The number of slots; 0 if the worker is not serving.
    pub slots: u32,
    /// The number of queued requests of clients that are bound to the worker.
    pub waiting: u32,
    /// Why the worker receives no new requests.
    pub out: Option<&'static str>,
    /// Counters of the worker.
    pub tally: WorkerTally,
}

/// Counters of a worker since its start or, if it has a name, since it was declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerTally {
    /// The number of requests sent to the worker.
    pub requests: u64,
    /// The number of HTTP responses by status class, 1xx to 5xx.
    pub responses: [u64; 5],
    /// The number of requests without a complete reply.
    pub failures: u64,
    /// The number of failed requests that were retried on another worker.
    pub retries: u64,
    /// How often the worker was ejected.
    pub ejections: u64,
    /// The reason of the last failed request, and how long ago it was.
    pub last_failure: Option<(&'static str, Duration)>,
}

impl WorkerTally {
    /// Adds the counters of another shard for the same worker.
    fn add(&mut self, other: &Self) {
        let Self { requests, responses, failures, retries, ejections, last_failure } = other;
        self.requests += requests;
        self.responses.iter_mut().zip(responses).for_each(|(sum, more)| *sum += more);
        self.failures += failures;
        self.retries += retries;
        self.ejections += ejections;
        let latest = self.last_failure.into_iter().chain(*last_failure);
        self.last_failure = latest.min_by_key(|(_, ago)| *ago);
    }
}

/// The result of an operator's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderResult {
    /// The command was carried out. The text describes the new state.
    Done(String),
    /// The pool or worker does not exist. The text says which.
    Unknown(String),
}

/// The decisions about a request in one pool, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The name of the pool.
    pub pool: String,
    /// One sentence for each decision.
    pub decisions: Vec<String>,
}

/// A worker as the backend sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// The configured name, or one that the pool assigned.
    pub name: String,
    /// The process id, if the worker is a process.
    pub pid: Option<u32>,
    /// `starting`, `serving` or `ending`.
    pub state: &'static str,
    /// The number of requests in flight.
    pub in_flight: usize,
    /// The number of answered requests.
    pub served: u64,
}

/// The ids of recent requests with the decisions about them, the latest first.
pub type RecentDecisions = Vec<(u64, String)>;

/// The recent decisions of one shard, with the time of each.
pub type TimedDecisions = Vec<(Instant, u64, String)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(shard: u32, served: u64, owner: bool) -> Status {
        let place = PlaceStatus {
            name: "s".to_owned(),
            weight: 1,
            weight_configured: 1,
            weight_set: None,
            admin_state: "enabled",
            health: "up",
            health_since: None,
            ejected_for: None,
            check_kind: None,
            check: owner.then(|| "200".to_owned()),
            in_use: 2,
            slots: 9,
            waiting: 0,
            out: None,
            tally: WorkerTally {
                requests: served,
                responses: [0, served, 0, 0, 1],
                failures: 1,
                retries: 1,
                ejections: u64::from(owner),
                last_failure: owner.then_some(("died", Duration::from_secs(2))),
            },
        };
        let worker = WorkerStatus {
            name: "p/s".to_owned(),
            pid: None,
            state: "serving",
            in_flight: 2,
            served,
        };
        let pool = PoolStatus {
            name: "p".to_owned(),
            queued: u32::from(owner) * 5,
            queued_bytes: 0,
            oldest: None,
            down: false,
            down_kind: None,
            down_reason: None,
            fallback: None,
            bound: 0,
            on_backup: false,
            places: vec![place],
            workers: vec![worker],
        };
        let memory = MemoryStatus { held: 0, max: 1, over: false };
        Status {
            listeners: Vec::new(),
            pools: vec![pool],
            exchanges: 1,
            draining: false,
            shard,
            memory,
        }
    }

    #[test]
    fn a_pool_is_as_its_home_sees_it_with_what_is_done_elsewhere() {
        for owner in 0..3 {
            let all = (0..3).rev().map(|shard| seen(shard, 10, shard == owner)).collect();
            let sum = Status::together(all, |_| owner).unwrap();
            let pool = &sum.pools[0];
            assert_eq!((sum.exchanges, pool.queued, pool.places[0].in_use), (3, 5, 6));
            assert_eq!((pool.workers[0].in_flight, pool.workers[0].served), (6, 30));
            assert!(pool.places[0].check.is_some());
            let tally = &pool.places[0].tally;
            assert_eq!((tally.requests, tally.failures, tally.ejections), (30, 3, 1));
            assert_eq!(tally.responses, [0, 30, 0, 0, 3]);
            assert_eq!(tally.last_failure, Some(("died", Duration::from_secs(2))));
        }
    }
}
