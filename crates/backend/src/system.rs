//! Access to processes and threads. In a simulation, all of it is replaced.

use std::collections::BTreeMap;
use std::io;

use exchange::{PoolId, WorkerId, WorkerIndex};
use spawn::Spawn;

use flow::worker_report::Reports;

/// Starts handler threads. In a simulation, it is replaced.
pub trait ThreadSpawner: Send {
    /// Runs `body` on a new thread named `name`.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    fn run(&mut self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Notifies that a batch or the end was passed to the latest thread named `name`. Only a simulation needs this
    /// call, to schedule that thread.
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

/// Processes and threads of a shard.
pub struct System {
    /// Starts and stops processes.
    pub spawner: Box<dyn Spawn>,
    /// Starts threads.
    pub runner: Box<dyn ThreadSpawner>,
    /// Delivers reports of threads.
    pub reports: Reports,
    /// The worker for each token in reports of the spawner.
    pub tokens: BTreeMap<u64, (PoolId, WorkerId)>,
    /// The next token.
    pub token_next: u64,
    /// The pool and the worker index of the health check for each token in reports of the spawner.
    pub checks: BTreeMap<u64, (PoolId, WorkerIndex)>,
}

impl System {
    /// Returns a new token for the process of a worker.
    pub fn token(&mut self, pool: PoolId, worker: WorkerId) -> u64 {
        let token = self.token_next;
        self.token_next += 1;
        self.tokens.insert(token, (pool, worker));
        token
    }

    /// Returns a new token for the program that checks this worker.
    pub fn check_token(&mut self, pool: PoolId, worker: WorkerIndex) -> u64 {
        let token = self.token_next;
        self.token_next += 1;
        self.checks.insert(token, (pool, worker));
        token
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
