//! The state that the threads of a pool share, and its transitions. No job runs under the lock.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use super::hooks::Hooks;
use super::job::{OpenError, Refusal, Refused, Serve};
use super::settings::ThreadPoolSettings;
use super::statistics::Statistics;
use crate::{Load, Policy};

/// Another worker is woken only if at least this many jobs wait for each worker that is already looking for one.
const JOBS_PER_LOOKING_WORKER: usize = 8;
/// The first pause after a thread could not be opened; each further pause is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

pub(super) type Open<J> = Box<dyn Fn() -> Result<Serve<J>, OpenError> + Send + Sync>;

pub(super) struct Shared<J> {
    pub(super) name: String,
    pub(super) open: Open<J>,
    pub(super) hooks: Hooks,
    queue_max: usize,
    state: Mutex<State<J>>,
    /// Wakes the supervisor: `next_check` has changed.
    pub(super) supervisor_wake: Condvar,
    /// Wakes `join` and `drain`: no job waits and no job runs, or the pool is over.
    pub(super) all_done: Condvar,
    /// Wakes `submit_wait`: a job was taken out of the queue, or the pool is draining.
    room: Condvar,
}

/// Whether jobs are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No more jobs are accepted; threads end when the queue is empty.
    Draining,
}

pub(super) struct QueuedJob<J> {
    pub(super) job: J,
    pub(super) since: Instant,
}

/// Why an idle worker is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    Nothing,
    /// There may be a job.
    Look,
    /// The worker must end, because it is surplus.
    End,
}

/// The slot of one worker.
pub(super) struct Slot {
    pub(super) wake: Arc<Condvar>,
    pub(super) wake_reason: WakeReason,
    pub(super) thread: Option<JoinHandle<()>>,
}

pub(super) struct State<J> {
    pub(super) queue: VecDeque<QueuedJob<J>>,
    pub(super) phase: Phase,
    pub(super) slots: Vec<Slot>,
    /// Slots without a thread.
    pub(super) vacant: Vec<usize>,
    /// Slots of workers that sleep; the one with the longest idle time is first.
    pub(super) idle: Vec<usize>,
    /// Ready workers that are awake and have no job: they are about to take one, or to sleep again.
    pub(super) looking: u32,
    pub(super) busy: u32,
    pub(super) starting: u32,
    pub(super) ending: u32,
    /// Slots whose threads have ended and are not joined yet.
    pub(super) ended: Vec<usize>,
    pub(super) policy: Policy,
    /// When the supervisor looks next; `None`: only when it is notified.
    pub(super) next_check: Option<Instant>,
    /// The number of consecutive threads that could not be opened. `retry_at` is the end of the resulting pause.
    failures: u32,
    pub(super) retry_at: Option<Instant>,
    /// The most recent reason why a thread could not be started or opened.
    pub(super) open_error: Option<String>,
    /// Whether a thread could not be started or opened since the drain began.
    failed_in_drain: bool,
    joiners: u32,
    /// Callers of `submit_wait` that wait for room in the queue.
    pub(super) submitters: u32,
    /// All threads have ended, after the phase `Draining`.
    pub(super) all_ended: bool,
    pub(super) counts: Counts,
}

/// The counts of the statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) since: SystemTime,
    pub(super) begun: Instant,
    pub(super) served: u64,
    pub(super) panicked: u64,
    pub(super) refused: u64,
    pub(super) started: u64,
    pub(super) open_failed: u64,
    pub(super) threads_max: u32,
    pub(super) working: Duration,
    pub(super) waited: Duration,
}

impl Counts {
    pub(super) fn starting_now(threads: u32) -> Self {
        Self {
            since: SystemTime::now(),
            begun: Instant::now(),
            served: 0,
            panicked: 0,
            refused: 0,
            started: 0,
            open_failed: 0,
            threads_max: threads,
            working: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }
}

impl<J> Shared<J> {
    pub(super) fn new(settings: ThreadPoolSettings, open: Open<J>) -> Self {
        let ThreadPoolSettings { name, sizing, queue_max, hooks } = settings;
        let state = State {
            queue: VecDeque::new(),
            phase: Phase::Open,
            slots: Vec::new(),
            vacant: Vec::new(),
            idle: Vec::new(),
            looking: 0,
            busy: 0,
            starting: 0,
            ending: 0,
            ended: Vec::new(),
            policy: Policy::new(sizing),
            next_check: None,
            failures: 0,
            retry_at: None,
            open_error: None,
            failed_in_drain: false,
            joiners: 0,
            submitters: 0,
            all_ended: false,
            counts: Counts::starting_now(0),
        };
        Self {
            name,
            open,
            hooks,
            queue_max,
            state: Mutex::new(state),
            supervisor_wake: Condvar::new(),
            all_done: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// The name of the thread in this slot.
    pub(super) fn thread_name(&self, slot: usize) -> String {
        format!("{}/{slot}", self.name)
    }

    /// Locks the state. Poisoning is ignored: no job runs under the lock, so a panic elsewhere leaves the state
    /// consistent.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(
        &self,
        on: &Condvar,
        state: MutexGuard<'a, State<J>>,
    ) -> MutexGuard<'a, State<J>> {
        on.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait_for<'a>(
        &self,
        on: &Condvar,
        state: MutexGuard<'a, State<J>>,
        time: Duration,
    ) -> MutexGuard<'a, State<J>> {
        on.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits on `on` until `is_over` returns true or the time is over. Without a time, it waits as long as necessary.
    pub(super) fn wait_until<'a>(
        &self,
        on: &Condvar,
        mut state: MutexGuard<'a, State<J>>,
        until: Option<Instant>,
        is_over: impl Fn(&State<J>) -> bool,
    ) -> MutexGuard<'a, State<J>> {
        while !is_over(&state) {
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => state = self.wait(on, state),
                Some(Duration::ZERO) => break,
                Some(left) => state = self.wait_for(on, state, left),
            }
        }
        state
    }

    /// Waits until no job waits and no job runs, or until this time. Returns whether no job waits and no job runs.
    pub(super) fn join(&self, until: Option<Instant>) -> bool {
        let mut state = self.lock();
        state.joiners += 1;
        state = self.wait_until(&self.all_done, state, until, State::is_all_done);
        state.joiners -= 1;
        state.is_all_done()
    }

    pub(super) fn submit(&self, job: J) -> Result<(), Refused<J>> {
        let now = Instant::now();
        self.add(self.lock(), job, now)
    }

    /// Waits for room in the queue until this time, and adds the job if there is room.
    pub(super) fn submit_wait(&self, job: J, until: Option<Instant>) -> Result<(), Refused<J>> {
        let mut state = self.lock();
        let may_go_on =
            |state: &State<J>| state.phase == Phase::Draining || state.queue.len() < self.queue_max;
        state.submitters += 1;
        state = self.wait_until(&self.room, state, until, may_go_on);
        state.submitters -= 1;
        self.add(state, job, Instant::now())
    }

    fn add(
        &self,
        mut state: MutexGuard<'_, State<J>>,
        job: J,
        now: Instant,
    ) -> Result<(), Refused<J>> {
        let why = match state.phase {
            Phase::Draining => Some(Refusal::Draining),
            Phase::Open if state.queue.len() >= self.queue_max => Some(Refusal::Full),
            Phase::Open => None,
        };
        if let Some(why) = why {
            state.counts.refused += 1;
            return Err(Refused { job, why });
        }
        state.queue.push_back(QueuedJob { job, since: now });
        let sleeper = state.take_sleeper();
        // If a worker is idle, it takes the job, and the policy has no advice for that.
        if state.waiting() > 0 {
            self.consult(&mut state, now);
        }
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.notify_one();
        }
        Ok(())
    }

    /// Wakes the supervisor at the time when the policy must be called, if that is earlier than its next look.
    pub(super) fn consult(&self, state: &mut State<J>, now: Instant) {
        let due = state.compute_next_check(now);
        if let Some(due) = due
            && state.next_check.is_none_or(|at| due < at)
        {
            state.next_check = Some(due);
            self.supervisor_wake.notify_one();
        }
    }

    /// Wakes the supervisor immediately.
    pub(super) fn wake_supervisor(&self, state: &mut State<J>) {
        // Any time in the past.
        state.next_check = Some(state.counts.begun);
        self.supervisor_wake.notify_one();
    }

    /// Stops accepting jobs. Sleeping workers are woken to take the remaining jobs or to end.
    pub(super) fn close<'a>(
        &self,
        mut state: MutexGuard<'a, State<J>>,
    ) -> MutexGuard<'a, State<J>> {
        if state.phase == Phase::Open {
            // Try once more, immediately, for the jobs that wait.
            state.retry_at = None;
        }
        state.phase = Phase::Draining;
        for slot in std::mem::take(&mut state.idle) {
            state.looking += 1;
            state.slots[slot].wake_reason = WakeReason::Look;
            state.slots[slot].wake.notify_one();
        }
        self.room.notify_all();
        self.wake_supervisor(&mut state);
        state
    }

    /// Notifies one caller of `submit_wait` that a job was taken out of the queue.
    pub(super) fn notify_of_room(&self, state: &State<J>) {
        if state.submitters > 0 {
            self.room.notify_one();
        }
    }

    /// Notifies `join` if no job waits and no job runs.
    pub(super) fn notify_if_all_done(&self, state: &State<J>) {
        if state.joiners > 0 && state.is_all_done() {
            self.all_done.notify_all();
        }
    }
}

impl<J> State<J> {
    /// The number of jobs beyond those that idle workers will take.
    fn waiting(&self) -> u32 {
        let idle = self.idle.len() + self.looking as usize;
        u32::try_from(self.queue.len().saturating_sub(idle)).unwrap_or(u32::MAX)
    }

    /// The number of threads, in any state.
    pub(super) fn threads(&self) -> u32 {
        self.idle_count() + self.busy + self.starting + self.ending
    }

    /// Ready workers without a job.
    fn idle_count(&self) -> u32 {
        u32::try_from(self.idle.len()).unwrap_or(u32::MAX) + self.looking
    }

    pub(super) fn load(&self, now: Instant) -> Load {
        let waiting = self.waiting();
        let paused = self.retry_at.is_some_and(|at| now < at);
        Load {
            busy: self.busy,
            idle: self.idle_count(),
            starting: self.starting,
            ending: self.ending,
            waiting,
            oldest: self.queue.front().map(|it| it.since).filter(|_| waiting > 0),
            room: if paused { 0 } else { u32::MAX },
            may_shrink: self.failures == 0 && self.phase == Phase::Open,
        }
    }

    /// When the policy must be called, or a pause is over.
    pub(super) fn compute_next_check(&mut self, now: Instant) -> Option<Instant> {
        let load = self.load(now);
        let due = self.policy.observe(now, &load);
        let retry_at = self.retry_at.filter(|at| now < *at);
        due.into_iter().chain(retry_at).min()
    }

    /// Returns the sleeping worker to wake for the waiting jobs, if any. From now on the worker counts as looking.
    pub(super) fn take_sleeper(&mut self) -> Option<Arc<Condvar>> {
        if self.queue.len() <= self.looking as usize * JOBS_PER_LOOKING_WORKER {
            return None;
        }
        let slot = self.idle.pop()?;
        self.looking += 1;
        self.slots[slot].wake_reason = WakeReason::Look;
        Some(Arc::clone(&self.slots[slot].wake))
    }

    pub(super) fn is_all_done(&self) -> bool {
        self.queue.is_empty() && self.busy == 0
    }

    /// Whether all threads that were started have ended and are joined.
    pub(super) fn is_empty(&self) -> bool {
        self.threads() == 0 && self.ended.is_empty()
    }

    /// A thread could not be opened: the next start is delayed.
    pub(super) fn handle_failure(&mut self, now: Instant, why: String) {
        self.open_error = Some(why);
        self.failed_in_drain |= self.phase == Phase::Draining;
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        let pause = PAUSE_FIRST.saturating_mul(1 << doublings).min(PAUSE_MAX);
        self.retry_at = now.checked_add(pause);
        self.counts.open_failed += 1;
    }

    /// Whether a drain would wait forever: jobs wait, no thread serves them, and no thread could be opened for them.
    pub(super) fn is_stuck(&self) -> bool {
        self.failed_in_drain
            && !self.queue.is_empty()
            && self.busy + self.starting + self.idle_count() == 0
    }

    /// The number of ready workers beyond `max`, after `max` was lowered.
    pub(super) fn excess(&self) -> u32 {
        self.policy.excess(self.busy + self.idle_count())
    }

    /// A thread was opened: resets the back-off.
    pub(super) fn handle_opened(&mut self) {
        self.failures = 0;
        self.retry_at = None;
        self.failed_in_drain = false;
    }

    /// Checks that every thread is counted exactly once; for tests.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let counted = self.threads() as usize + self.ended.len() + self.vacant.len();
        assert!(counted <= self.slots.len() && self.slots.len() <= counted + 1, "counted twice");
        assert!(self.threads() <= self.policy.sizing().max, "more than `max`");
    }

    pub(super) fn statistics(&self, now: Instant) -> Statistics {
        let Counts { since, begun, served, panicked, refused, .. } = self.counts;
        let Counts { started, open_failed, threads_max, working, waited, .. } = self.counts;
        Statistics {
            since,
            elapsed: now.saturating_duration_since(begun),
            served,
            panicked,
            refused,
            started,
            open_failed,
            threads_max,
            working,
            waited,
            waiting: self.queue.len(),
            oldest: self
                .queue
                .front()
                .map_or(Duration::ZERO, |it| now.saturating_duration_since(it.since)),
            busy: self.busy,
            idle: self.idle_count(),
            starting: self.starting,
        }
    }
}
