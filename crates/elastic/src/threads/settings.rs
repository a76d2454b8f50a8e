//! The settings of a pool.

use std::error::Error;
use std::sync::Arc;

use super::hooks::Hooks;
use crate::Sizing;

/// Settings of a thread pool: [`new`](Self::new) makes them, and the other methods and fields change them.
///
/// ```
/// use elastic::{Sizing, ThreadPool, ThreadPoolSettings};
/// use std::sync::mpsc::channel;
///
/// let (sender, panics) = channel();
/// let settings = ThreadPoolSettings::new("errands", Sizing::on_demand(4))
///     .with_queue_max(100)
///     .on_open_error(|thread, error| eprintln!("{thread} cannot be opened: {error}"))
///     .on_panic(move |thread, message| drop(sender.send(format!("{thread}: {message}"))));
/// let pool = ThreadPool::of_tasks(settings)?;
/// pool.submit(Box::new(|| panic!("no such errand")))?;
/// pool.join();
/// assert_eq!(panics.recv()?, "errands/0: no such errand");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThreadPoolSettings {
    /// Threads are named `NAME/0`, `NAME/1`, …; the system shows the first 15 bytes.
    pub name: String,
    /// How many threads the pool has.
    pub sizing: Sizing,
    /// The maximum number of waiting jobs; another job is refused.
    pub queue_max: usize,
    pub(super) hooks: Hooks,
}

impl ThreadPoolSettings {
    /// Settings with this name and sizing, and a queue for 10,000 jobs.
    #[must_use]
    pub fn new(name: &str, sizing: Sizing) -> Self {
        Self { name: name.to_owned(), sizing, queue_max: 10_000, hooks: Hooks::default() }
    }

    /// Changes the maximum number of waiting jobs.
    #[must_use]
    pub fn with_queue_max(mut self, queue_max: usize) -> Self {
        self.queue_max = queue_max;
        self
    }

    /// Calls `hook` each time that a thread cannot be started, or that `open` fails or panics on it. The arguments are
    /// the name of the thread and the error.
    ///
    /// It is called on the thread itself, or on the supervisor's thread if the system starts no thread. No lock is held.
    /// If it panics, that panic is ignored.
    #[must_use]
    pub fn on_open_error(
        mut self,
        hook: impl Fn(&str, &(dyn Error + Send + Sync + 'static)) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.open_error = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` each time that a job panics. The arguments are the name of the thread and the message of the panic,
    /// or `Box<dyn Any>` if the panic has no text.
    ///
    /// It is called on the thread of the job, which still counts as busy, so [`ThreadPool::join`](super::ThreadPool::join) also waits for the
    /// hook. No lock is held. If it panics, that panic is ignored. The panic hook of the process is called as well,
    /// before it.
    #[must_use]
    pub fn on_panic(mut self, hook: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.hooks.panic = Some(Arc::new(hook));
        self
    }
}
