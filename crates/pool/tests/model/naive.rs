//! A pool made of plain lists, obviously correct, which checks a real one: every effect must be allowed by the model,
//! and everything that the model requires must be done.

mod watch;

use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId};
use pool::{Pool, Queueable, Refused, Settings, Ticket};

/// One event. The numbers select one of the existing items.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A request that holds this number of bytes.
    Request(usize),
    Abandon(usize),
    /// A worker has finished one of its batches.
    Release(usize, usize),
    Started(usize),
    StartFailed(usize),
    Retire(usize),
    /// A worker that is ending is gone.
    Ended(usize, bool),
    /// A ready worker dies; this number of its youngest requests had not reached it.
    Dies {
        worker: usize,
        unsent: usize,
        retire: bool,
    },
    /// An event for a worker that is gone.
    Stale(usize, u8),
    Settings(Box<Settings>),
    Drain,
    Stop,
    /// Time passes, in milliseconds.
    Pass(u64),
    /// The next time of the pool has come.
    Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    id: usize,
    bytes: usize,
}

impl Queueable for Job {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting,
    Working,
    /// The request has left the pool.
    Out,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Leaving,
    Stopping,
    Retiring,
}

#[derive(Debug)]
struct Worker {
    id: WorkerId,
    state: State,
    /// A batch for each slot in use.
    batches: Vec<Vec<Job>>,
    ready_at: Option<Instant>,
    undecided: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Draining,
    Stopping,
}

#[derive(Debug)]
struct Waiting {
    job: Job,
    since: Instant,
    ticket: Ticket,
}

#[derive(Debug)]
pub(crate) struct Naive {
    pool: Pool<Job>,
    settings: Settings,
    now: Instant,
    /// Time that has passed and was not reported to the pool yet.
    passed: Duration,
    phase: Phase,
    waiting: Vec<Waiting>,
    /// Requests that waited too long and must be rejected before anything else happens.
    expired: Vec<Job>,
    workers: Vec<Worker>,
    /// Round robin: the workers with a free slot, in the order of their turns.
    turns: Vec<WorkerId>,
    /// The worker and the requests of the batch that is being dispatched.
    handed: Option<(WorkerId, u32, usize)>,
    /// A request that is admitted after waiting batches have left to make room.
    late: Option<Waiting>,
    /// A batch that waits for more requests may leave to make room, though it is not due.
    early: bool,
    /// A longer time that previous settings promised to the waiting requests.
    promised: Duration,
    fates: Vec<Fate>,
    tickets: Vec<(Ticket, usize)>,
    gone: Vec<WorkerId>,
}

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

impl Naive {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        let now = start();
        let pool = Pool::new(settings, now, seed);
        let mut naive = Self {
            settings: pool.settings().clone(),
            pool,
            now,
            passed: Duration::ZERO,
            phase: Phase::Serving,
            waiting: Vec::new(),
            expired: Vec::new(),
            workers: Vec::new(),
            turns: Vec::new(),
            handed: None,
            late: None,
            early: false,
            promised: Duration::ZERO,
            fates: Vec::new(),
            tickets: Vec::new(),
            gone: Vec::new(),
        };
        naive.follow();
        naive
    }

    pub(crate) fn apply(&mut self, op: Op) {
        match op {
            Op::Request(bytes) => self.request(bytes),
            Op::Abandon(pick) => self.abandon(pick),
            Op::Release(worker, batch) => self.release(worker, batch),
            Op::Started(pick) => {
                if let Some(worker) = self.pick(pick, |state| state == State::Starting) {
                    self.started(worker);
                }
            }
            Op::StartFailed(pick) => {
                if let Some(worker) = self.pick(pick, |state| state == State::Starting) {
                    self.begin();
                    let id = self.remove(worker);
                    self.pool.handle_start_failed(self.now, id);
                }
            }
            Op::Retire(pick) => {
                let any = |state| state != State::Stopping && state != State::Retiring;
                if let Some(worker) = self.pick(pick, any) {
                    self.begin();
                    self.retire(worker);
                }
            }
            Op::Ended(pick, expected) => {
                let ending = |state| matches!(state, State::Stopping | State::Retiring);
                if let Some(worker) = self.pick(pick, ending) {
                    self.begin();
                    let id = self.remove(worker);
                    self.pool.handle_ended(self.now, id, expected);
                }
            }
            Op::Dies { worker, unsent, retire } => {
                if let Some(worker) = self.pick(worker, |state| state != State::Starting) {
                    self.dies(worker, unsent, retire);
                }
            }
            Op::Stale(pick, event) => self.stale(pick, event),
            Op::Settings(settings) => self.change(*settings),
            Op::Drain => {
                self.begin();
                self.phase = self.phase.max(Phase::Draining);
                self.pool.handle_drain(self.now);
            }
            Op::Stop => {
                self.begin();
                self.phase = Phase::Stopping;
                self.pool.handle_stop(self.now);
            }
            Op::Pass(millis) => self.passed += Duration::from_millis(millis),
            Op::Due => {
                if let Some(at) = self.pool.next_time() {
                    self.passed = self.passed.max(at - self.now);
                    self.begin();
                    self.pool.handle_time(self.now);
                }
            }
        }
        self.follow();
    }

    /// If all workers serve and no request arrives, the fallback ends after a while.
    pub(crate) fn calms(&mut self) {
        for _ in 0..1000 {
            if self.phase > Phase::Serving || !self.is_fallback_on() {
                return;
            }
            self.work_off();
            self.apply(Op::Due);
        }
        panic!("it is sorry for ever");
    }

    pub(super) fn is_fallback_on(&self) -> bool {
        self.pool.status().fallback.is_some()
    }

    /// Drains the pool, then stops it: every request must get an answer, and every worker must end.
    pub(crate) fn finish(&mut self) {
        self.apply(Op::Drain);
        for _ in 0..1000 {
            if self.waiting.is_empty() && self.pool.is_idle() {
                break;
            }
            self.work_off();
            self.apply(Op::Due);
        }
        assert!(self.waiting.is_empty() && self.pool.is_idle(), "a drain comes to its end");
        self.apply(Op::Stop);
        while !self.workers.is_empty() {
            self.work_off();
        }
        let status = self.pool.status();
        assert_eq!((status.starting, status.idle, status.busy, status.retiring), (0, 0, 0, 0));
        assert_eq!(self.pool.next_time(), None, "nothing is left to do");
        assert!(self.fates.iter().all(|fate| *fate == Fate::Out), "nobody is forgotten");
        let counts = self.pool.counts();
        let (came, went) = (counts.admitted + counts.returned, counts.dispatched);
        assert_eq!(came, went + counts.abandoned + counts.expired, "counts agree");
    }

    fn work_off(&mut self) {
        for pick in 0..self.workers.len().max(1) {
            self.apply(Op::Started(pick));
            self.apply(Op::Release(pick, 0));
            self.apply(Op::Ended(pick, true));
        }
    }

    /// The time has advanced: requests that have waited too long are rejected first.
    fn begin(&mut self) {
        self.now += std::mem::take(&mut self.passed);
        let (now, wait) = (self.now, self.settings.queue.wait);
        while self.waiting.first().is_some_and(|first| first.since + wait <= now) {
            self.expired.push(self.waiting.remove(0).job);
        }
    }

    fn request(&mut self, bytes: usize) {
        self.begin();
        let job = Job { id: self.fates.len(), bytes };
        let fits = self.fits(bytes);
        let free = self.any_free();
        self.early = !fits && free;
        // A request whose wait is found to be too long now is a reason for the fallback.
        let expires = self.settings.fallback.is_some() && !self.expired.is_empty();
        let fallback = self.is_fallback_on() || expires;
        match self.pool.handle_request(self.now, job) {
            Ok(ticket) => {
                assert!(!fallback || free, "nobody waits in the fallback");
                assert_eq!(self.phase, Phase::Serving, "taken in while it drains");
                assert!(fits || free, "taken in beyond the limits");
                self.fates.push(Fate::Waiting);
                self.tickets.push((ticket, job.id));
                self.late = Some(Waiting { job, since: self.now, ticket });
                if fits {
                    self.waiting.extend(self.late.take());
                }
                self.let_in();
            }
            Err(Refused { payload, cause }) => {
                assert_eq!(payload, job, "a refusal gives back what came");
                self.fates.push(Fate::Out);
                match cause {
                    Cause::Draining => assert_ne!(self.phase, Phase::Serving),
                    Cause::Full | Cause::Waited | Cause::Down if fallback => {
                        self.follow();
                        assert!(!self.fits(bytes) || !self.any_free(), "a free slot is used");
                    }
                    Cause::Down => assert!(self.pool.status().open && self.ready() == 0),
                    Cause::Full => {
                        self.follow();
                        assert!(!self.fits(bytes) && !self.any_free(), "refused though it fits");
                    }
                    cause => panic!("refused for {cause:?}"),
                }
            }
        }
    }

    /// Admits the late request when there is room, or when no request waits and it will be dispatched.
    fn let_in(&mut self) {
        let fits = |late: &Waiting| self.waiting.is_empty() || self.fits(late.job.bytes);
        if self.late.as_ref().is_some_and(fits) {
            self.waiting.extend(self.late.take());
        }
    }

    fn abandon(&mut self, pick: usize) {
        // Mostly a request that still waits, sometimes one that has left.
        let recent = &self.tickets[self.tickets.len().saturating_sub(8)..];
        let Some((ticket, id)) = pick.checked_rem(recent.len()).map(|at| recent[at]) else {
            return;
        };
        let at = self.waiting.iter().position(|waiting| waiting.ticket == ticket);
        let expected = at.map(|at| self.waiting.remove(at).job);
        if expected.is_some() {
            self.fates[id] = Fate::Out;
        }
        self.begin();
        assert_eq!(self.pool.handle_abandon(self.now, ticket), expected);
    }

    fn started(&mut self, worker: usize) {
        self.begin();
        let worker = &mut self.workers[worker];
        worker.state = State::Ready;
        worker.ready_at = Some(self.now);
        let id = worker.id;
        self.turns.push(id);
        self.trim();
        self.pool.handle_started(self.now, id);
    }

    fn release(&mut self, worker: usize, batch: usize) {
        let busy: Vec<_> =
            (0..self.workers.len()).filter(|at| !self.workers[*at].batches.is_empty()).collect();
        let Some(worker) = worker.checked_rem(busy.len()).map(|at| busy[at]) else { return };
        self.begin();
        let worker = &mut self.workers[worker];
        let batch = batch % worker.batches.len();
        for job in worker.batches.remove(batch) {
            self.fates[job.id] = Fate::Out;
        }
        let (id, free) = (worker.id, worker.state == State::Ready);
        let in_use = worker.batches.len();
        if free && in_use < self.slots() && !self.turns.contains(&id) {
            self.turns.push(id);
        }
        self.pool.handle_released(self.now, id);
    }

    fn retire(&mut self, worker: usize) {
        let min_uptime = self.settings.backoff.min_uptime;
        let worker = &mut self.workers[worker];
        worker.state = State::Retiring;
        worker.undecided = worker.ready_at.is_none_or(|at| self.now - at < min_uptime);
        let id = worker.id;
        self.turns.retain(|turn| *turn != id);
        self.pool.handle_retired(self.now, id);
    }

    fn dies(&mut self, worker: usize, unsent: usize, retire: bool) {
        let id = self.workers[worker].id;
        if retire && !matches!(self.workers[worker].state, State::Stopping | State::Retiring) {
            self.begin();
            self.retire(worker);
            self.follow();
        }
        // The caller retires the worker before it returns any request.
        if self.workers[worker].state == State::Retiring {
            let mut jobs: Vec<_> = self.workers[worker].batches.iter().flatten().copied().collect();
            jobs.sort_by_key(|job| job.id);
            for job in jobs.iter().rev().take(unsent) {
                self.returned(worker, *job);
            }
        }
        self.begin();
        let at = self.workers.iter().position(|worker| worker.id == id).expect("still there");
        self.remove(at);
        self.pool.handle_ended(self.now, id, false);
    }

    fn returned(&mut self, worker: usize, job: Job) {
        self.begin();
        for batch in &mut self.workers[worker].batches {
            batch.retain(|other| *other != job);
        }
        let since = self.waiting.first().map_or(self.now, |first| first.since);
        let ticket = self.pool.handle_returned(self.now, job);
        self.pool.handle_time(self.now);
        self.fates[job.id] = Fate::Waiting;
        self.tickets.push((ticket, job.id));
        self.waiting.insert(0, Waiting { job, since, ticket });
        self.follow();
    }

    fn stale(&mut self, pick: usize, event: u8) {
        let Some(id) = pick.checked_rem(self.gone.len()).map(|at| self.gone[at]) else { return };
        self.begin();
        let stale = self.pool.counts().stale;
        match event {
            0 => self.pool.handle_started(self.now, id),
            1 => self.pool.handle_start_failed(self.now, id),
            2 => self.pool.handle_released(self.now, id),
            3 => self.pool.handle_retired(self.now, id),
            _ => self.pool.handle_ended(self.now, id, false),
        }
        assert_eq!(self.pool.counts().stale, stale + 1);
    }

    fn change(&mut self, settings: Settings) {
        self.begin();
        self.promised = self.settings.queue.wait;
        self.pool.handle_settings(self.now, settings);
        if self.settings.schedule != self.pool.settings().schedule {
            self.turns.clear();
        }
        self.settings = self.pool.settings().clone();
        let slots = self.slots();
        let free = |worker: &&Worker| worker.state == State::Ready && worker.batches.len() < slots;
        let mut free: Vec<_> = self.workers.iter().filter(free).map(|worker| worker.id).collect();
        free.sort_by_key(|id| id.index());
        // Workers that have a turn keep it; others follow.
        self.turns.retain(|id| free.contains(id));
        free.retain(|id| !self.turns.contains(id));
        self.turns.extend(free);
        self.trim();
    }

    /// Ready workers above `max`: idle ones are stopped, the least busy others leave.
    fn trim(&mut self) {
        let max = self.settings.sizing.max as usize;
        let mut ready: Vec<_> =
            self.workers.iter_mut().filter(|worker| worker.state == State::Ready).collect();
        ready.sort_by_key(|worker| (worker.batches.len(), worker.id.index()));
        let excess = ready.len().saturating_sub(max);
        for worker in ready.into_iter().take(excess).filter(|worker| !worker.batches.is_empty()) {
            worker.state = State::Leaving;
            let id = worker.id;
            self.turns.retain(|turn| *turn != id);
        }
    }

    /// A worker is gone, with its requests in flight.
    fn remove(&mut self, worker: usize) -> WorkerId {
        let worker = self.workers.remove(worker);
        for job in worker.batches.iter().flatten() {
            self.fates[job.id] = Fate::Out;
        }
        self.turns.retain(|turn| *turn != worker.id);
        self.gone.push(worker.id);
        worker.id
    }

    /// Whether the oldest requests form a batch that may leave.
    fn due(&self) -> bool {
        let (batch, limits) = (self.settings.batch, self.settings.queue);
        let Some(first) = self.waiting.first() else { return false };
        batch.wait.is_zero()
            || self.phase > Phase::Serving
            || self.waiting.len() >= batch.rows.min(limits.length) as usize
            || self.queued_bytes() >= batch.bytes.min(limits.bytes)
            || first.since + batch.wait <= self.now
    }

    fn fits(&self, bytes: usize) -> bool {
        let limits = self.settings.queue;
        self.waiting.len() < limits.length as usize && self.queued_bytes() + bytes <= limits.bytes
    }

    fn queued_bytes(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.job.bytes).sum()
    }

    fn any_free(&self) -> bool {
        let slots = self.slots();
        self.workers
            .iter()
            .any(|worker| worker.state == State::Ready && worker.batches.len() < slots)
    }

    fn slots(&self) -> usize {
        self.settings.slots as usize
    }

    fn ready(&self) -> usize {
        self.count(State::Ready)
    }

    fn count(&self, state: State) -> usize {
        self.workers.iter().filter(|worker| worker.state == state).count()
    }

    /// Selects one of the workers in such a state.
    fn pick(&self, pick: usize, wanted: impl Fn(State) -> bool) -> Option<usize> {
        let fitting: Vec<_> =
            (0..self.workers.len()).filter(|at| wanted(self.workers[*at].state)).collect();
        pick.checked_rem(fitting.len()).map(|at| fitting[at])
    }
}
