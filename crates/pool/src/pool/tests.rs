//! Scenarios with virtual time.

mod balance;
mod crash;
mod end;
mod fallback;
mod keep;
mod recycle;
mod reload;
mod requests;
mod workers;

use std::time::Duration;

use super::*;
use crate::settings::{BackoffSettings, Batching, QueueLimits, Schedule};

/// A request: its number, and the bytes that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job(u32, usize);

impl Queueable for Job {
    fn bytes(&self) -> usize {
        self.1
    }
}

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// This number of workers, which take one request at a time. The number of workers does not change by itself.
fn fixed(workers: u32) -> Settings {
    let sizing = elastic::Sizing { min: workers, max: workers, ..elastic::Sizing::default() };
    Settings { sizing, ..Settings::default() }
}

/// A pool, its time, and its effects.
struct Yard {
    pool: Pool<Job>,
    now: Instant,
    /// Worker, number and `last` of each dispatch.
    dispatched: Vec<(WorkerId, u32, bool)>,
    refused: Vec<(u32, Cause)>,
    started: Vec<WorkerId>,
    stopped: Vec<WorkerId>,
}

impl Yard {
    fn new(settings: Settings) -> Self {
        let now = start();
        let mut yard = Self {
            pool: Pool::new(settings, now, 1),
            now,
            dispatched: Vec::new(),
            refused: Vec::new(),
            started: Vec::new(),
            stopped: Vec::new(),
        };
        yard.follow();
        yard
    }

    /// A pool whose first workers are ready.
    fn ready(settings: Settings) -> Self {
        let mut yard = Self::new(settings);
        yard.start_all();
        yard
    }

    fn follow(&mut self) {
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Dispatch { worker, payload, last } => {
                    self.dispatched.push((worker, payload.0, last));
                }
                Effect::Refuse { payload, cause } => self.refused.push((payload.0, cause)),
                Effect::Start { worker } => self.started.push(worker),
                Effect::Stop { worker } => self.stopped.push(worker),
                Effect::ToOwner { .. } => unreachable!("it has no branches"),
            }
        }
        self.pool.check();
    }

    fn request(&mut self, job: Job) -> Result<Ticket, Cause> {
        let answer = self.pool.handle_request(self.now, job).map_err(|refused| refused.cause);
        self.follow();
        answer
    }

    /// Submits requests of ten bytes, which must be admitted.
    fn requests(&mut self, numbers: impl IntoIterator<Item = u32>) -> Vec<Ticket> {
        numbers.into_iter().map(|number| self.request(Job(number, 10)).unwrap()).collect()
    }

    /// All requested workers become ready.
    fn start_all(&mut self) -> Vec<WorkerId> {
        let started = std::mem::take(&mut self.started);
        for worker in &started {
            self.pool.handle_started(self.now, *worker);
            self.follow();
        }
        started
    }

    fn release(&mut self, worker: WorkerId) {
        self.pool.handle_released(self.now, worker);
        self.follow();
    }

    fn returned(&mut self, number: u32) -> Ticket {
        let ticket = self.pool.handle_returned(self.now, Job(number, 10));
        self.pool.handle_time(self.now);
        self.follow();
        ticket
    }

    fn retire(&mut self, worker: WorkerId) {
        self.pool.handle_retired(self.now, worker);
        self.follow();
    }

    fn ended(&mut self, worker: WorkerId, expected: bool) {
        self.pool.handle_ended(self.now, worker, expected);
        self.follow();
    }

    fn start_failed(&mut self, worker: WorkerId) {
        self.pool.handle_start_failed(self.now, worker);
        self.follow();
    }

    fn settings(&mut self, settings: Settings) {
        self.pool.handle_settings(self.now, settings);
        self.follow();
    }

    fn drain(&mut self) {
        self.pool.handle_drain(self.now);
        self.follow();
    }

    fn stop(&mut self) {
        self.pool.handle_stop(self.now);
        self.follow();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.pool.handle_time(self.now);
        self.follow();
    }

    /// Advances to the pool's next time. Returns the time that passed.
    fn wait(&mut self) -> Duration {
        let at = self.pool.next_time().expect("the pool wants to be called again");
        let time = at - self.now;
        self.pass(time);
        time
    }

    /// Numbers dispatched since the last call, one list per batch.
    fn batches(&mut self) -> Vec<Vec<u32>> {
        let mut batches = vec![Vec::new()];
        for (_, number, last) in self.dispatched.drain(..) {
            batches.last_mut().unwrap().push(number);
            if last {
                batches.push(Vec::new());
            }
        }
        assert_eq!(batches.pop(), Some(Vec::new()), "every batch has a last request");
        batches
    }

    /// Numbers dispatched since the last call.
    fn numbers(&mut self) -> Vec<u32> {
        self.batches().concat()
    }
}

impl Pool<Job> {
    /// The number of requests that it can store without allocating more memory.
    fn footprint(&self) -> [usize; 4] {
        let queue = self.queue.footprint();
        [queue.0, queue.1, self.effects.capacity(), self.workers.all().count()]
    }
}
