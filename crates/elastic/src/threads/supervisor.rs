//! The thread that follows the policy: it starts workers, ends idle ones, and joins those that have ended. It sleeps
//! until the policy must be called.

use std::sync::{Arc, Condvar, MutexGuard};
use std::thread::Builder;
use std::time::Instant;

use super::job::OpenError;
use super::state::{Phase, Shared, Slot, State, WakeReason};
use super::worker;
use crate::Advice;

/// Runs until the pool is drained and its last thread has ended.
pub(super) fn run<J: Send + 'static>(shared: &Arc<Shared<J>>) {
    let mut state = shared.lock();
    shared.wake_supervisor(&mut state);
    loop {
        let now = Instant::now();
        match state.next_check {
            None => state = shared.wait(&shared.supervisor_wake, state),
            Some(at) if now < at => {
                state = shared.wait_for(&shared.supervisor_wake, state, at.duration_since(now));
            }
            Some(_) => {
                state = join_ended(shared, state);
                state = follow_policy(shared, state);
                if state.phase == Phase::Draining && state.queue.is_empty() && state.is_empty() {
                    break;
                }
            }
        }
    }
    state.all_ended = true;
    drop(state);
    shared.all_done.notify_all();
}

/// Joins the threads that have ended.
fn join_ended<'a, J>(
    shared: &'a Shared<J>,
    mut state: MutexGuard<'a, State<J>>,
) -> MutexGuard<'a, State<J>> {
    while let Some(slot) = state.ended.pop() {
        let thread = state.slots[slot].thread.take();
        drop(state);
        if let Some(thread) = thread {
            // The worker catches its panics itself.
            let _ = thread.join();
        }
        state = shared.lock();
        state.vacant.push(slot);
    }
    state
}

/// Follows the policy until it returns `Nothing`.
fn follow_policy<'a, J: Send + 'static>(
    shared: &'a Arc<Shared<J>>,
    mut state: MutexGuard<'a, State<J>>,
) -> MutexGuard<'a, State<J>> {
    loop {
        while state.excess() > 0 && !state.idle.is_empty() {
            end_one(&mut state);
        }
        let now = Instant::now();
        let load = state.load(now);
        let draining = state.phase == Phase::Draining;
        match state.policy.advise(now, &load) {
            // During a drain idle workers end by themselves, and an empty queue needs no worker.
            Advice::Start(_) if draining && state.queue.is_empty() => {
                state.next_check = state.ended.first().map(|_| now);
                return state;
            }
            Advice::Start(count) => {
                for _ in 0..count {
                    state = start(shared, state);
                }
            }
            Advice::Stop => {
                // End the worker with the longest idle time. Workers that are looking for a job also count as idle for
                // the policy; they call `consult` when they go to sleep.
                if state.idle.is_empty() {
                    state.next_check = state.ended.first().map(|_| now);
                    return state;
                }
                end_one(&mut state);
            }
            Advice::Nothing => break,
        }
    }
    let now = Instant::now();
    // A thread may have ended while the lock was released.
    state.next_check =
        if state.ended.is_empty() { state.compute_next_check(now) } else { Some(now) };
    state
}

/// Ends the worker with the longest idle time.
fn end_one<J>(state: &mut State<J>) {
    let slot = state.idle.remove(0);
    state.ending += 1;
    state.slots[slot].wake_reason = WakeReason::End;
    state.slots[slot].wake.notify_one();
}

/// Starts one thread.
fn start<'a, J: Send + 'static>(
    shared: &'a Arc<Shared<J>>,
    mut state: MutexGuard<'a, State<J>>,
) -> MutexGuard<'a, State<J>> {
    let slot = state.vacant.pop().unwrap_or_else(|| {
        let wake = Arc::new(Condvar::new());
        state.slots.push(Slot { wake, wake_reason: WakeReason::Nothing, thread: None });
        state.slots.len() - 1
    });
    state.starting += 1;
    state.counts.started += 1;
    state.counts.threads_max = state.counts.threads_max.max(state.threads());
    drop(state);
    let spawned = {
        let shared = Arc::clone(shared);
        let builder = Builder::new().name(shared.thread_name(slot));
        builder.spawn(move || worker::run(&shared, slot))
    };
    let mut state = shared.lock();
    match spawned {
        Ok(thread) => state.slots[slot].thread = Some(thread),
        Err(error) => {
            let error: OpenError = format!("no thread can be started: {error}").into();
            drop(state);
            shared.hooks.report_open_error(&shared.thread_name(slot), &*error);
            state = shared.lock();
            state.starting -= 1;
            state.vacant.push(slot);
            state.handle_failure(Instant::now(), error.to_string());
            if state.is_stuck() {
                shared.all_done.notify_all();
            }
        }
    }
    state
}
