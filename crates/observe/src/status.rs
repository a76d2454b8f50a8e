//! What is going on, for the admin address.

use std::time::{Duration, Instant};

/// A shard at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its listeners.
    pub listeners: Vec<ListenerStatus>,
    /// Its pools.
    pub pools: Vec<PoolStatus>,
    /// Requests on their way.
    pub exchanges: usize,
    /// Whether it takes no more requests.
    pub draining: bool,
    /// Which shard says so; of several together, the first.
    pub shard: u32,
    /// What the daemon holds, all shards together.
    pub memory: MemoryStatus,
}

/// The memory of a daemon at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStatus {
    /// What waits occupies so much.
    pub held: usize,
    /// `memory_max`.
    pub max: usize,
    /// New requests are rejected.
    pub over: bool,
}

impl Status {
    /// What several shards say of themselves, as one: each pool as its home sees it, with what its
    /// workers have to do for other shards. Nothing when nobody says anything.
    pub fn together(mut all: Vec<Self>, home: impl Fn(&str) -> u32) -> Option<Self> {
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
                if home(&seen.name) == other.shard && first != other.shard {
                    std::mem::swap(pool, &mut seen);
                }
                pool.add(&seen);
            }
        }
        Some(sum)
    }
}

/// A listener at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerStatus {
    /// Its name.
    pub name: String,
    /// Open connections.
    pub connections: u32,
    /// Connections accepted since the start.
    pub accepted: u64,
}

/// A pool at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Requests that wait.
    pub queued: u32,
    /// Bytes that they hold.
    pub queued_bytes: usize,
    /// How long the oldest has waited.
    pub oldest: Option<Duration>,
    /// Whether requests are refused because no worker can be started.
    pub down: bool,
    /// Why, for everybody: of what kind it is, where `last_words` allows that.
    pub down_kind: Option<String>,
    /// Why, for operators: how the last program ended with what it said last, or why it could not be started.
    pub down_reason: Option<String>,
    /// Why it is sorry, and for how long.
    pub sorry: Option<(&'static str, Duration)>,
    /// Clients that are bound to a worker.
    pub bound: u32,
    /// Whether the backup workers serve.
    pub on_backup: bool,
    /// How the schedule sees its workers.
    pub places: Vec<PlaceStatus>,
    /// Its workers.
    pub workers: Vec<WorkerStatus>,
}

impl PoolStatus {
    /// Adds what a branch has its workers do.
    fn add(&mut self, branch: &Self) {
        for (place, more) in self.places.iter_mut().zip(&branch.places) {
            place.in_use += more.in_use;
            place.tally.add(&more.tally);
        }
        for worker in &mut self.workers {
            if let Some(more) = branch.workers.iter().find(|more| more.name == worker.name) {
                worker.in_flight += more.in_flight;
                worker.served += more.served;
            }
        }
    }
}

/// A worker as the schedule sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceStatus {
    /// What `ctl` knows it by: its name, or the number of its place.
    pub name: String,
    /// Its weight in force: the one set at run time or, without one, that of the configuration.
    pub weight: u32,
    /// Its weight in the configuration.
    pub weight_configured: u32,
    /// Its weight as set at run time.
    pub weight_set: Option<u32>,
    /// `enabled`, `drained` or `disabled`, by hand.
    pub hand: &'static str,
    /// `up`, `down` or `ejected`.
    pub health: &'static str,
    /// What made it so, and how long ago; none: nothing has since the start.
    pub health_since: Option<(&'static str, Duration)>,
    /// How much longer it stays ejected.
    pub ejected_for: Option<Duration>,
    /// What its last check came to, for everybody: of what kind it is.
    pub check_kind: Option<String>,
    /// What its last check came to, for operators: with what the worker answered.
    pub check: Option<String>,
    /// Slots in use.
    pub in_use: u32,
    /// Slots; 0 when it serves nobody.
    pub slots: u32,
    /// Requests of its own clients that wait for it.
    pub waiting: u32,
    /// Why it is given nothing new.
    pub out: Option<&'static str>,
    /// What was counted of it.
    pub tally: WorkerTally,
}

/// What was counted of a worker since it was started or, where it has a name, declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerTally {
    /// Requests given to it.
    pub requests: u64,
    /// Its HTTP responses by the class of their status, 1xx to 5xx.
    pub responses: [u64; 5],
    /// Requests that it did not answer, or not completely.
    pub failures: u64,
    /// Requests that it failed and that were given to another.
    pub retries: u64,
    /// Times that it was ejected.
    pub ejections: u64,
    /// Why it failed a request last, and how long ago.
    pub last_failure: Option<(&'static str, Duration)>,
}

impl WorkerTally {
    /// Adds what another shard counted of the same worker.
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

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was carried out.
    Done(String),
    /// What it is about is not there.
    Unknown(String),
}

/// What was decided about a request in one pool, in words, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The pool.
    pub pool: String,
    /// The decisions.
    pub decisions: Vec<String>,
}

/// A worker at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// Its process, where it is one.
    pub pid: Option<u32>,
    /// `starting`, `serving` or `ending`.
    pub state: &'static str,
    /// Requests in its hands.
    pub in_flight: usize,
    /// Requests that it answered.
    pub served: u64,
}

/// Requests and what was decided about them, in words, the latest first.
pub type Lately = Vec<(u64, String)>;

/// The same with the time of each, of one shard.
pub type LatelyAt = Vec<(Instant, u64, String)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(shard: u32, served: u64, home: bool) -> Status {
        let place = PlaceStatus {
            name: "s".to_owned(),
            weight: 1,
            weight_configured: 1,
            weight_set: None,
            hand: "enabled",
            health: "up",
            health_since: None,
            ejected_for: None,
            check_kind: None,
            check: home.then(|| "200".to_owned()),
            in_use: 2,
            slots: 9,
            waiting: 0,
            out: None,
            tally: WorkerTally {
                requests: served,
                responses: [0, served, 0, 0, 1],
                failures: 1,
                retries: 1,
                ejections: u64::from(home),
                last_failure: home.then_some(("died", Duration::from_secs(2))),
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
            queued: u32::from(home) * 5,
            queued_bytes: 0,
            oldest: None,
            down: false,
            down_kind: None,
            down_reason: None,
            sorry: None,
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
        for home in 0..3 {
            let all = (0..3).rev().map(|shard| seen(shard, 10, shard == home)).collect();
            let sum = Status::together(all, |_| home).unwrap();
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
