//! The checks of the model: each effect as it occurs, and the conditions when all effects are carried out.

use std::time::Duration;

use exchange::{Cause, WorkerId};
use pool::{Effect, Schedule};

use super::{Fate, Job, Naive, Phase, State, Worker};

impl Naive {
    /// Checks every effect of the pool, and that nothing else remains to be done.
    pub(super) fn follow(&mut self) {
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Dispatch { worker, payload, last } => {
                    self.dispatched(worker, payload, last);
                }
                Effect::Refuse { payload, cause } => self.refused(payload, cause),
                Effect::Start { worker } => self.start(worker),
                Effect::Stop { worker } => self.stop(worker),
                Effect::ToOwner { .. } => unreachable!("it has no branches"),
            }
        }
        self.settled();
    }

    fn dispatched(&mut self, id: WorkerId, job: Job, last: bool) {
        assert!(self.expired.is_empty(), "what waited too long is refused first");
        let (rows, bytes) = match self.handed {
            Some((worker, rows, bytes)) => {
                assert_eq!(worker, id, "the requests of a batch follow each other");
                (rows, bytes)
            }
            None => {
                assert!(self.early || self.due(), "a batch that is not due");
                self.give(id);
                (0, 0)
            }
        };
        let first = self.waiting.remove(0);
        assert_eq!(first.job, job, "first come, first served");
        let ends = first.since + self.settings.queue.wait.max(self.promised);
        assert!(ends > self.now || first.since == self.now, "dispatched after its time");
        let batch = self.settings.batch;
        let (rows, bytes) = (rows + 1, bytes + job.bytes);
        assert!(rows <= batch.rows, "too many rows");
        assert!(rows == 1 || bytes <= batch.bytes, "too many bytes");
        let more = rows < batch.rows
            && self.waiting.first().is_some_and(|next| bytes + next.job.bytes <= batch.bytes);
        assert_eq!(last, !more, "a batch takes what it may and no more");
        self.handed = more.then_some((id, rows, bytes));
        self.fates[job.id] = Fate::Working;
        let worker = self.workers.iter_mut().find(|worker| worker.id == id).expect("given");
        worker.batches.last_mut().expect("given").push(job);
        if last {
            self.let_in();
        }
    }

    /// The worker is given a batch. It must be the worker whose turn it is.
    fn give(&mut self, id: WorkerId) {
        let slots = self.slots();
        let free = |worker: &&Worker| worker.state == State::Ready && worker.batches.len() < slots;
        let least = self.workers.iter().filter(free).map(|worker| worker.batches.len()).min();
        match self.settings.schedule {
            Schedule::RoundRobin => assert_eq!(self.turns.first(), Some(&id), "not its turn"),
            Schedule::LeastRequests => {
                let worker = self.workers.iter().find(|worker| worker.id == id).expect("alive");
                assert_eq!(Some(worker.batches.len()), least, "another has less to do");
            }
            // The other schedules have oracles of their own, in the tests of the schedules.
            _ => {}
        }
        let worker = self.workers.iter_mut().find(|worker| worker.id == id).expect("alive");
        assert_eq!(worker.state, State::Ready, "only a ready worker is given work");
        worker.batches.push(Vec::new());
        assert!(worker.batches.len() <= slots, "more than its slots");
        let in_use = worker.batches.len();
        self.turns.retain(|turn| *turn != id);
        if in_use < slots {
            self.turns.push(id);
        }
    }

    fn refused(&mut self, job: Job, cause: Cause) {
        assert!(self.handed.is_none(), "the requests of a batch follow each other");
        self.fates[job.id] = Fate::Out;
        if !self.expired.is_empty() {
            assert_eq!((self.expired.remove(0), Cause::Waited), (job, cause));
            return;
        }
        let first = self.waiting.remove(0);
        assert_eq!(first.job, job, "the oldest is refused first");
        match cause {
            Cause::Waited => assert!(first.since + self.settings.queue.wait <= self.now),
            Cause::Down => assert_eq!(self.ready(), 0, "down with a worker ready"),
            Cause::Draining => {
                assert_eq!(self.phase, Phase::Stopping);
                assert_eq!(self.ready() + self.count(State::Starting), 0);
            }
            cause => panic!("refused for {cause:?}"),
        }
    }

    fn start(&mut self, id: WorkerId) {
        assert!(self.handed.is_none(), "the requests of a batch follow each other");
        assert_ne!(self.phase, Phase::Stopping, "started at the end");
        assert!(self.workers.iter().all(|worker| worker.id.index() != id.index()), "a new id");
        assert!(!self.gone.contains(&id), "a new id");
        let (batches, state) = (Vec::new(), State::Starting);
        self.workers.push(Worker { id, state, batches, ready_at: None, undecided: false });
        assert!(self.workers.len() <= self.settings.sizing.max as usize, "never above `max`");
    }

    fn stop(&mut self, id: WorkerId) {
        let worker = self.workers.iter_mut().find(|worker| worker.id == id).expect("alive");
        assert!(matches!(worker.state, State::Ready | State::Leaving), "it can be stopped");
        assert!(worker.batches.is_empty(), "it has nothing to do");
        let left = std::mem::replace(&mut worker.state, State::Stopping) == State::Leaving;
        self.turns.retain(|turn| *turn != id);
        let enough = self.ready() >= self.settings.sizing.min as usize;
        assert!(self.phase == Phase::Stopping || left || enough, "never below `min`");
    }

    fn settled(&mut self) {
        self.pool.check();
        self.promised = Duration::ZERO;
        self.early = false;
        assert!(self.handed.is_none(), "a batch has a last request");
        assert!(self.late.is_none(), "room was made");
        assert!(self.expired.is_empty(), "what waited too long is refused");
        assert!(!(self.any_free() && self.due()), "a slot is free and a batch is due");
        self.follows_status();
        self.nobody_is_missing();
        let ends = self.waiting.first().map(|first| first.since + self.settings.queue.wait);
        let next_time = self.pool.next_time();
        assert!(ends.is_none_or(|ends| next_time.is_some_and(|at| at <= ends)), "on time");
        for waiting in &self.waiting {
            assert_eq!(self.fates[waiting.job.id], Fate::Waiting, "nobody is there twice");
        }
    }

    fn follows_status(&self) {
        let status = self.pool.status();
        assert_eq!(status.queued as usize, self.waiting.len());
        assert_eq!(status.queued_bytes, self.queued_bytes());
        assert_eq!(status.oldest, self.waiting.first().map(|first| first.since));
        assert_eq!(status.starting as usize, self.count(State::Starting));
        let idle = |worker: &&Worker| worker.state == State::Ready && worker.batches.is_empty();
        let idle = self.workers.iter().filter(idle).count();
        assert_eq!((status.idle + status.busy) as usize, self.ready());
        assert_eq!(status.idle as usize, idle);
        let alive = self.workers.len();
        assert_eq!(status.retiring as usize, alive - self.ready() - self.count(State::Starting));
        let in_use: usize = self.workers.iter().map(|worker| worker.batches.len()).sum();
        assert_eq!(status.slots_in_use as usize, in_use);
        assert_eq!(self.pool.is_idle(), self.waiting.is_empty() && in_use == 0);
    }

    /// Every required worker is ready, is starting, or is delayed by the back-off.
    fn nobody_is_missing(&self) {
        let status = self.pool.status();
        let undecided = self.workers.iter().filter(|worker| worker.undecided).count();
        let pending = self.count(State::Starting) + undecided;
        let room = self.workers.len() < self.settings.sizing.max as usize;
        if self.phase != Phase::Serving || status.next_start.is_some() || !room {
            return;
        }
        if status.open {
            assert!(pending > 0, "an open circuit is probed");
        } else {
            let least = self.settings.sizing.min as usize;
            assert!(self.ready() + pending >= least, "below `min` for no reason");
            let wanted = !self.waiting.is_empty() || self.is_fallback_on();
            assert!(self.ready() + pending > 0 || !wanted, "waiting for nobody");
        }
    }
}
