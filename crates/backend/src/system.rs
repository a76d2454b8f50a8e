//! What a shard reaches outside of itself: programs, threads, what these report. A simulation replaces
//! all of it.

use std::collections::BTreeMap;
use std::io;

use exchange::{PoolId, WorkerId};
use spawn::Spawn;

use flow::worker_report::Reports;

/// Starts the threads of handlers. A simulation replaces it.
pub trait ThreadSpawner: Send {
    /// Runs `body` on a thread of that name.
    ///
    /// # Errors
    /// When the system has no more threads to give.
    fn run(&mut self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// A batch, or the end, was put where the latest thread of that name finds it. Threads of the
    /// system see that by themselves; a simulation must know whose turn it is.
    fn handed(&mut self, name: &str) {
        let _ = name;
    }
}

/// Threads of the operating system.
#[derive(Debug, Default)]
pub struct Threads;

impl ThreadSpawner for Threads {
    fn run(&mut self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        std::thread::Builder::new().name(name).spawn(body).map(drop)
    }
}

/// What workers use outside of the shard.
pub struct System {
    pub spawner: Box<dyn Spawn>,
    pub runner: Box<dyn ThreadSpawner>,
    /// Where threads report to.
    pub reports: Reports,
    /// Which worker a report of the spawner is about.
    pub tokens: BTreeMap<u64, (PoolId, WorkerId)>,
    pub token_next: u64,
    /// Which check a report of the spawner is about: its pool and the place of the worker.
    pub checks: BTreeMap<u64, (PoolId, usize)>,
}

impl System {
    /// A token by which the spawner's reports find this worker.
    pub fn token(&mut self, pool: PoolId, worker: WorkerId) -> u64 {
        let token = self.token_next;
        self.token_next += 1;
        self.tokens.insert(token, (pool, worker));
        token
    }

    /// The same for the program that checks the worker at a place.
    pub fn check_token(&mut self, pool: PoolId, place: usize) -> u64 {
        let token = self.token_next;
        self.token_next += 1;
        self.checks.insert(token, (pool, place));
        token
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
