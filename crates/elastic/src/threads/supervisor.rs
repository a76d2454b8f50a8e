//! The thread that follows the policy: it starts workers, ends idle ones, and joins those that have ended. It sleeps
//! until the policy must be called.

use std::sync::{Arc, Condvar, MutexGuard};
use std::thread::Builder;
use std::time::Instant;

use super::state::{Phase, Seat, Shared, State, Told};
use super::worker;
use crate::Advice;

/// Runs until the pool is drained and its last thread has ended.
pub(super) fn run<J: Send + 'static>(shared: &Arc<Shared<J>>) {
    let mut state = shared.lock();
    shared.look_now(&mut state);
    loop {
        let now = Instant::now();
        match state.look_at {
            None => state = shared.wait(&shared.looks, state),
            Some(at) if now < at => {
                state = shared.wait_for(&shared.looks, state, at.duration_since(now));
            }
            Some(_) => {
                state = bury(shared, state);
                state = follow(shared, state);
                if state.phase == Phase::Draining && state.queue.is_empty() && state.is_empty() {
                    break;
                }
            }
        }
    }
    state.is_over = true;
    drop(state);
    shared.rest.notify_all();
}

/// Joins the threads that have ended.
fn bury<'a, J>(
    shared: &'a Shared<J>,
    mut state: MutexGuard<'a, State<J>>,
) -> MutexGuard<'a, State<J>> {
    while let Some(seat) = state.ended.pop() {
        let thread = state.seats[seat].thread.take();
        drop(state);
        if let Some(thread) = thread {
            // The worker catches its panics itself.
            let _ = thread.join();
        }
        state = shared.lock();
        state.vacant.push(seat);
    }
    state
}

/// Follows the policy until it returns `Nothing`.
fn follow<'a, J: Send + 'static>(
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
                state.look_at = state.ended.first().map(|_| now);
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
                    state.look_at = state.ended.first().map(|_| now);
                    return state;
                }
                end_one(&mut state);
            }
            Advice::Nothing => break,
        }
    }
    let now = Instant::now();
    // A thread may have ended while the lock was released.
    state.look_at = if state.ended.is_empty() { state.next_look(now) } else { Some(now) };
    state
}

/// Ends the worker with the longest idle time.
fn end_one<J>(state: &mut State<J>) {
    let seat = state.idle.remove(0);
    state.ending += 1;
    state.seats[seat].told = Told::End;
    state.seats[seat].wake.notify_one();
}

/// Starts one thread.
fn start<'a, J: Send + 'static>(
    shared: &'a Arc<Shared<J>>,
    mut state: MutexGuard<'a, State<J>>,
) -> MutexGuard<'a, State<J>> {
    let seat = state.vacant.pop().unwrap_or_else(|| {
        let wake = Arc::new(Condvar::new());
        state.seats.push(Seat { wake, told: Told::Nothing, thread: None });
        state.seats.len() - 1
    });
    state.starting += 1;
    state.counts.started += 1;
    state.counts.threads_max = state.counts.threads_max.max(state.threads());
    drop(state);
    let spawned = {
        let shared = Arc::clone(shared);
        let builder = Builder::new().name(format!("{}/{seat}", shared.name));
        builder.spawn(move || worker::run(&shared, seat))
    };
    let mut state = shared.lock();
    match spawned {
        Ok(thread) => state.seats[seat].thread = Some(thread),
        Err(error) => {
            state.starting -= 1;
            state.vacant.push(seat);
            state.handle_failure(Instant::now(), format!("no thread can be started: {error}"));
            if state.is_stuck() {
                shared.rest.notify_all();
            }
        }
    }
    state
}
