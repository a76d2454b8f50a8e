//! A pool of threads that follows the policy.
//!
//! What it is: a bounded queue of jobs, threads that take them, and one thread more, the
//! *supervisor*, that starts and ends them as the policy says. What it knows: threads and the
//! time. What it must never know: what a job is.
//!
//! ```text
//!  submit ──▶ queue ──▶ worker NAME/0   busy
//!    │          │       worker NAME/1   idle, sleeps; the one that rested shortest is woken first
//!    │          │       …
//!    └──────────┴─────▶ supervisor      sleeps until the policy wants to be asked again
//! ```
//!
//! One lock guards everything; jobs run outside of it. A submit wakes one idle worker, and not
//! another as long as that one is on its way: a worker that takes a job and sees more of them wakes
//! the next. So a burst of short jobs costs a few wake-ups instead of one each. A pool that rests
//! has threads that sleep without a timeout: it costs nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the policy is pure; a pool of threads has threads and a clock"
)]

mod job;
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
pub use statistics::{Statistics, write_metrics};

/// How a pool of threads is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPoolSettings {
    /// Threads are called `NAME/0`, `NAME/1`, …; the system shows the first 15 bytes.
    pub name: String,
    /// How many threads.
    pub sizing: Sizing,
    /// Jobs that may wait; one more is refused.
    pub queue_max: usize,
}

impl ThreadPoolSettings {
    /// A pool of that name with that many threads, in whose queue ten thousand jobs have room.
    #[must_use]
    pub fn new(name: &str, sizing: Sizing) -> Self {
        Self { name: name.to_owned(), sizing, queue_max: 10_000 }
    }
}

/// How a drain ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Drained<J> {
    /// Jobs that nobody had begun when the time was over, the oldest first.
    pub unserved: Vec<J>,
    /// Jobs that ran when the time was over. They run on, and their threads end after them.
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

/// A pool of threads that grows and shrinks.
///
/// Dropping it lets the jobs in its queue be served and the threads end, without waiting for it;
/// [`drain`](Self::drain) waits.
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
    /// A pool whose threads do with their jobs what `open` gives them. `open` runs on each new
    /// thread, and again after a job has panicked. When it fails the thread ends, and the next
    /// start waits, twice as long each time, from 100 ms to 10 s.
    ///
    /// # Errors
    /// When not even the supervisor's thread can be started.
    pub fn new(
        settings: ThreadPoolSettings,
        open: impl Fn() -> Result<Serve<J>, OpenError> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let ThreadPoolSettings { name, sizing, queue_max } = settings;
        let shared = Arc::new(Shared::new(name, sizing, queue_max, Box::new(open)));
        let supervisor = {
            let shared = Arc::clone(&shared);
            let builder = Builder::new().name(format!("{}/sizes", shared.name));
            builder.spawn(move || supervisor::run(&shared))?
        };
        Ok(Self { shared, supervisor: Mutex::new(Some(supervisor)) })
    }

    /// Puts a job into the queue. Never waits.
    ///
    /// # Errors
    /// The job, when the queue is full or the pool drains.
    pub fn submit(&self, job: J) -> Result<(), Refused<J>> {
        self.shared.submit(job)
    }

    /// Waits until nothing waits and nothing runs. More may be submitted meanwhile, by jobs too;
    /// a job that joins its own pool waits for itself.
    pub fn join(&self) {
        let mut state = self.shared.lock();
        state.joiners += 1;
        while !state.is_at_rest() {
            state = self.shared.wait(&self.shared.rest, state);
        }
        state.joiners -= 1;
    }

    /// Takes no more jobs, has those in the queue served, ends all threads and waits for that;
    /// when `within` is given, not longer than that. What had not begun by then is given back, and so
    /// is what waits when no thread is left and none can be opened ([`open_error`](Self::open_error)).
    ///
    /// A job that drains its own pool waits for itself.
    pub fn drain(&self, within: Option<Duration>) -> Drained<J> {
        let until = within.and_then(|within| Instant::now().checked_add(within));
        let mut state = self.shared.close(self.shared.lock());
        while !state.is_over && !state.is_stuck() {
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => state = self.shared.wait(&self.shared.rest, state),
                Some(Duration::ZERO) => break,
                Some(left) => state = self.shared.wait_for(&self.shared.rest, state, left),
            }
        }
        if state.is_over {
            drop(state);
            let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(supervisor) = supervisor {
                // A panic of it would be a bug of ours, and was shown when it happened.
                let _ = supervisor.join();
            }
            return Drained { unserved: Vec::new(), running: 0 };
        }
        let unserved = state.queue.drain(..).map(|waiting| waiting.job).collect();
        let running = state.busy;
        drop(self.shared.close(state));
        Drained { unserved, running }
    }

    /// Other numbers of threads from now on. Threads beyond a lower `max` end at once when they are
    /// idle, and after their job otherwise.
    pub fn resize(&self, sizing: Sizing) {
        let mut state = self.shared.lock();
        state.policy.handle_sizing(sizing);
        self.shared.look_now(&mut state);
    }

    /// Why a thread could not be started or opened last; it stays when one was opened since.
    #[must_use]
    pub fn open_error(&self) -> Option<String> {
        self.shared.lock().open_error.clone()
    }

    /// What it has done and is doing.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().statistics(Instant::now())
    }

    /// Lets the statistics begin anew.
    pub fn reset_statistics(&self) {
        let mut state = self.shared.lock();
        state.counts = state::Counts::starting_now(state.threads());
    }
}

impl ThreadPool<Task> {
    /// A pool whose jobs bring their own work.
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
    /// As [`new`](Self::new).
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
