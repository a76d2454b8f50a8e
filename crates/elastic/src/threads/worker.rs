//! One thread of a pool: it takes jobs until it is surplus or the pool drains.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::hooks::{discard, panic_message};
use super::job::{OpenError, Serve};
use super::state::{Phase, Shared, State, WakeReason};

/// Runs on the thread of this slot.
pub(super) fn run<J: Send + 'static>(shared: &Shared<J>, slot: usize) {
    let opened = open(shared, slot);
    let mut state = shared.lock();
    state.starting -= 1;
    let serve = match opened {
        Ok(serve) => serve,
        Err(why) => {
            state.ending += 1;
            state.handle_failure(Instant::now(), why);
            return leave(shared, state, slot);
        }
    };
    state.handle_opened();
    state.looking += 1;
    let state = work(shared, slot, state, serve);
    leave(shared, state, slot);
}

/// The last step of a thread that is ending.
fn leave<J>(shared: &Shared<J>, mut state: MutexGuard<'_, State<J>>, slot: usize) {
    state.ending -= 1;
    state.ended.push(slot);
    shared.wake_supervisor(&mut state);
    if state.is_stuck() {
        shared.all_done.notify_all();
    }
}

/// Returns the closure that serves the jobs, or why it cannot be opened now.
fn open<J>(shared: &Shared<J>, slot: usize) -> Result<Serve<J>, String> {
    // After a panic, nothing that `open` began is used.
    let error = match catch_unwind(AssertUnwindSafe(|| (shared.open)())) {
        Ok(Ok(serve)) => return Ok(serve),
        Ok(Err(error)) => error,
        Err(panic) => {
            let error = OpenError::from(format!("it panicked: {}", panic_message(&*panic)));
            discard(panic);
            error
        }
    };
    shared.hooks.report_open_error(&shared.thread_name(slot), &*error);
    Err(error.to_string())
}

/// Takes jobs. The worker counts as looking when this is called, and as ending when it returns.
fn work<'a, J>(
    shared: &'a Shared<J>,
    slot: usize,
    mut state: MutexGuard<'a, State<J>>,
    mut serve: Serve<J>,
) -> MutexGuard<'a, State<J>> {
    let mut now = Instant::now();
    // Whether the policy counts this worker as busy. A worker that goes from job to job need not consult it each time.
    let mut known_busy = false;
    loop {
        if state.excess() > 0 {
            // `max` was lowered, and this worker is ready for another job. It may have been woken for one, so it wakes
            // another.
            state.looking -= 1;
            state.ending += 1;
            if let Some(sleeper) = state.take_sleeper() {
                sleeper.notify_one();
            }
            break;
        }
        if let Some(waiting) = state.queue.pop_front() {
            state.looking -= 1;
            state.busy += 1;
            shared.notify_of_room(&state);
            state.counts.waited += now.saturating_duration_since(waiting.since);
            let sleeper = state.take_sleeper();
            if !known_busy {
                known_busy = true;
                shared.consult(&mut state, now);
            }
            drop(state);
            if let Some(sleeper) = sleeper {
                sleeper.notify_one();
            }
            let (begun, job) = (now, waiting.job);
            let result = catch_unwind(AssertUnwindSafe(|| serve(job)));
            now = Instant::now();
            state = shared.lock();
            state.counts.working += now.saturating_duration_since(begun);
            if let Err(panic) = result {
                state.counts.panicked += 1;
                drop(state);
                shared.hooks.report_panic(&shared.thread_name(slot), panic_message(&*panic));
                discard(panic);
                discard(serve);
                let opened = open(shared, slot);
                state = shared.lock();
                state.busy -= 1;
                match opened {
                    Ok(reopened) => serve = reopened,
                    Err(why) => {
                        state.ending += 1;
                        state.handle_failure(Instant::now(), why);
                        shared.notify_if_all_done(&state);
                        return state;
                    }
                }
            } else {
                state.counts.served += 1;
                state.busy -= 1;
            }
            state.looking += 1;
            continue;
        }
        if state.phase == Phase::Draining {
            state.looking -= 1;
            state.ending += 1;
            break;
        }
        state = sleep(shared, slot, state, now);
        known_busy = false;
        if state.slots[slot].wake_reason == WakeReason::End {
            break;
        }
        now = Instant::now();
    }
    // Dropping it may panic or take long, so it happens without the lock. It is dropped on the thread that created it.
    drop(state);
    discard(serve);
    let state = shared.lock();
    shared.notify_if_all_done(&state);
    state
}

/// Sleeps until there is something to do. The worker counts as looking when this is called. When it returns, the worker
/// counts as looking again, or as ending if it must end.
fn sleep<'a, J>(
    shared: &'a Shared<J>,
    slot: usize,
    mut state: MutexGuard<'a, State<J>>,
    now: Instant,
) -> MutexGuard<'a, State<J>> {
    state.looking -= 1;
    state.idle.push(slot);
    state.slots[slot].wake_reason = WakeReason::Nothing;
    shared.consult(&mut state, now);
    shared.notify_if_all_done(&state);
    let wake = Arc::clone(&state.slots[slot].wake);
    while state.slots[slot].wake_reason == WakeReason::Nothing {
        state = shared.wait(&wake, state);
    }
    state
}
