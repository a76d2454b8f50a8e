//! A thread pool that follows the policy.
//!
//! What it is: a bounded queue of jobs, worker threads that take them, and one more thread, the *supervisor*, which
//! starts and ends the workers according to the policy. What it depends on: threads and the time. What it must never
//! depend on: the kind of the jobs.
//!
//! ```text
//!  submit ──▶ queue ──▶ worker NAME/0   busy
//!    │          │       worker NAME/1   idle, sleeps; the one with the shortest idle time is woken first
//!    │          │       …
//!    └──────────┴─────▶ supervisor      sleeps until the policy must be called again
//! ```
//!
//! One lock protects everything; jobs run outside of it. A submit wakes one idle worker, and no second one while the
//! first is still waking up. If a worker takes a job and there are more jobs, it wakes the next worker. A burst of
//! short jobs therefore costs a few wake-ups instead of one per job. An idle pool costs nothing, because its threads
//! sleep without a timeout.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the policy is pure; a pool of threads has threads and a clock"
)]

mod hooks;
mod job;
mod settings;
mod state;
mod statistics;
mod supervisor;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::Sizing;
use state::{Phase, Shared};

pub use job::{OpenError, Refusal, Refused, Serve, Task};
pub use settings::ThreadPoolSettings;
pub use statistics::{Statistics, write_metrics};

/// The result of a drain.
#[derive(Clone, PartialEq, Eq)]
pub struct Drained<J> {
    /// Jobs that had not begun when the time was over, the oldest first.
    pub unserved: Vec<J>,
    /// The number of jobs that still ran when the time was over. They continue, and their threads end after them.
    pub running: u32,
}

impl<J> Drained<J> {
    /// Whether all jobs were served and all threads have ended.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.unserved.is_empty() && self.running == 0
    }
}

impl<J> fmt::Debug for Drained<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drained")
            .field("unserved", &self.unserved.len())
            .field("running", &self.running)
            .finish()
    }
}

/// A thread pool that grows and shrinks.
///
/// When the pool is dropped, the jobs in its queue are still served and the threads end, but the drop does not wait for
/// this; [`drain`](Self::drain) waits.
///
/// ```
/// use elastic::{Sizing, ThreadPool, ThreadPoolSettings};
/// use std::sync::mpsc::channel;
///
/// let settings = ThreadPoolSettings::new("squares", Sizing::prefork(1, 4, 1));
/// let (sender, receiver) = channel();
/// let pool = ThreadPool::new(settings, move || {
///     let sender = sender.clone();
///     Ok(Box::new(move |number: u64| sender.send(number * number).expect("it is received")))
/// })?;
/// for number in 1..=3 {
///     pool.submit(number)?;
/// }
/// pool.join();
/// assert_eq!(pool.statistics().served, 3);
/// assert_eq!(receiver.try_iter().sum::<u64>(), 1 + 4 + 9);
/// assert!(pool.drain(None).is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ThreadPool<J: Send + 'static> {
    shared: Arc<Shared<J>>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl<J: Send + 'static> ThreadPool<J> {
    /// Creates a pool. `open` returns the closure that serves the jobs of a thread. It runs on each new thread, and
    /// again after a job has panicked. If it fails, the thread ends, and the next start is delayed: 100 ms at first,
    /// twice as long each time, at most 10 s.
    ///
    /// # Errors
    /// If the supervisor's thread cannot be started.
    pub fn new(
        settings: ThreadPoolSettings,
        open: impl Fn() -> Result<Serve<J>, OpenError> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(settings, Box::new(open)));
        let supervisor = {
            let shared = Arc::clone(&shared);
            let builder = Builder::new().name(format!("{}/sizes", shared.name));
            builder.spawn(move || supervisor::run(&shared))?
        };
        Ok(Self { shared, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Adds a job to the queue. Never blocks.
    ///
    /// # Errors
    /// Returns the job if the queue is full or the pool is draining.
    pub fn submit(&self, job: J) -> Result<(), Refused<J>> {
        self.shared.submit(job)
    }

    /// Adds a job to the queue. If the queue is full, blocks until there is room, at most for `within` if it is given.
    /// Among several callers that wait, the order is arbitrary.
    ///
    /// A job that waits for room in the queue of its own pool keeps its thread busy. If all threads do this, they wait
    /// for each other.
    ///
    /// ```
    /// # use elastic::{Refusal, Sizing, ThreadPool, ThreadPoolSettings};
    /// # use std::time::Duration;
    /// let settings = ThreadPoolSettings::new("errands", Sizing::on_demand(1)).with_queue_max(1);
    /// let pool = ThreadPool::of_tasks(settings)?;
    /// for _ in 0..100 {
    ///     pool.submit_wait(Box::new(|| {}), None)?; // as fast as the pool serves them
    /// }
    /// pool.drain(None);
    /// let refused = pool.submit_wait(Box::new(|| {}), Some(Duration::from_secs(1))).unwrap_err();
    /// assert_eq!(refused.why, Refusal::Draining);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the job if the queue is still full after `within`, or the pool is draining.
    pub fn submit_wait(&self, job: J, within: Option<Duration>) -> Result<(), Refused<J>> {
        self.shared.submit_wait(job, end_of(within))
    }

    /// Waits until no job waits and no job runs. More jobs may be submitted meanwhile, also by jobs. A job that joins
    /// its own pool waits for itself and never returns.
    pub fn join(&self) {
        self.shared.join(None);
    }

    /// Like [`join`](Self::join), but waits at most for `within`. Returns whether no job waits and no job runs.
    #[must_use = "jobs may still wait or run"]
    pub fn join_for(&self, within: Duration) -> bool {
        self.shared.join(end_of(Some(within)))
    }

    /// Refuses new jobs, serves those in the queue, ends all threads and waits until they have ended, at most for
    /// `within` if it is given. Jobs that have not begun by then are returned. Jobs are also returned if no thread is
    /// left and none can be opened ([`open_error`](Self::open_error)).
    ///
    /// A job that drains its own pool waits for itself.
    pub fn drain(&self, within: Option<Duration>) -> Drained<J> {
        let state = self.shared.close(self.shared.lock());
        let is_over = |state: &state::State<J>| state.all_ended || state.is_stuck();
        let mut state =
            self.shared.wait_until(&self.shared.all_done, state, end_of(within), is_over);
        if state.all_ended {
            drop(state);
            let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(supervisor) = supervisor {
                // A panic of the supervisor would be a bug in this crate; it was reported when it happened.
                let _ = supervisor.join();
            }
            return Drained { unserved: Vec::new(), running: 0 };
        }
        let unserved = state.queue.drain(..).map(|waiting| waiting.job).collect();
        let running = state.busy;
        drop(self.shared.close(state));
        Drained { unserved, running }
    }

    /// Replaces the sizing. If `max` is lowered, surplus threads end immediately when they are idle, and after their
    /// job otherwise.
    pub fn resize(&self, sizing: Sizing) {
        let mut state = self.shared.lock();
        state.policy.set_sizing(sizing);
        self.shared.wake_supervisor(&mut state);
    }

    /// The most recent reason why a thread could not be started or opened; it is kept after a thread was opened
    /// successfully.
    #[must_use]
    pub fn open_error(&self) -> Option<String> {
        self.shared.lock().open_error.clone()
    }

    /// What the pool has done and is doing.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().statistics(Instant::now())
    }

    /// Resets the statistics.
    pub fn reset_statistics(&self) {
        let mut state = self.shared.lock();
        state.counts = state::Counts::starting_now(state.threads());
    }
}

/// When a wait that begins now ends. `None`: never, or too far away to be represented.
fn end_of(within: Option<Duration>) -> Option<Instant> {
    within.and_then(|within| Instant::now().checked_add(within))
}

impl ThreadPool<Task> {
    /// Creates a pool whose jobs are closures.
    ///
    /// ```
    /// # use elastic::{Sizing, ThreadPool, ThreadPoolSettings};
    /// let pool = ThreadPool::of_tasks(ThreadPoolSettings::new("errands", Sizing::on_demand(4)))?;
    /// pool.submit(Box::new(|| println!("done on a thread")))?;
    /// pool.drain(None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn of_tasks(settings: ThreadPoolSettings) -> io::Result<Self> {
        Self::new(settings, || Ok(Box::new(|task: Task| task())))
    }
}

impl<J: Send + 'static> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        let state = self.shared.lock();
        if state.phase == Phase::Open {
            drop(self.shared.close(state));
        }
    }
}

impl<J: Send + 'static> fmt::Debug for ThreadPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("name", &self.shared.name)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
