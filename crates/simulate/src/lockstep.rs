//! Runs the threads of handlers in lockstep: starts them, and passes the baton to each at its moment. See `threads` for
//! the states of a thread.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use gateway::ThreadSpawner;

use crate::chance::Actor;
use crate::scheduled_event::ScheduledEvent;
use crate::threads::{Baton, Thread, ThreadState};
use crate::world::Shared;

/// How often the thread of the loop checks whether another thread has become idle. This many checks take many seconds.
const LOOKS_MAX: u32 = 20_000_000;

thread_local! {
    /// The seat of this thread, if it belongs to a world.
    static THREAD_CONTEXT: RefCell<Option<ThreadContext>> = const { RefCell::new(None) };
}

/// The connection of a thread to its world.
#[derive(Clone, Debug)]
pub(crate) struct ThreadContext {
    pub(crate) shared: Shared,
    shard: usize,
    baton: Arc<Baton>,
}

/// The daemon has crashed, so this thread must end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crashed;

impl ThreadContext {
    /// Returns the seat of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        let context = THREAD_CONTEXT.with_borrow(Clone::clone);
        context.expect("handlers of a world run on its threads")
    }

    /// Waits until this time has passed in the world.
    pub(crate) fn pass(&self, time: Duration) -> Result<(), Crashed> {
        self.wait(ThreadState::Waiting(time))
    }

    /// Waits for the baton after the thread has received a batch or the end.
    pub(crate) fn arrive(&self) -> Result<(), Crashed> {
        self.wait(ThreadState::Arrived)
    }

    pub(crate) fn wait(&self, state: ThreadState) -> Result<(), Crashed> {
        if self.shared.crashed() {
            return Err(Crashed);
        }
        self.baton.set(state);
        self.baton.wait_while(|state| state != ThreadState::Running && !self.shared.crashed());
        if self.shared.crashed() { Err(Crashed) } else { Ok(()) }
    }

    /// Marks the thread as idle after it has sent this number of further messages.
    pub(crate) fn set_idle(&self, messages: usize) {
        let mail = self.shared.lock().loops[self.shard].mail_waiting() + messages;
        self.baton.set(ThreadState::Resting { mail });
    }

    /// Whether the thread has the baton.
    pub(crate) fn is_running(&self) -> bool {
        *self.baton.lock() == ThreadState::Running
    }
}

/// Starts the threads of one shard in a world.
#[derive(Debug)]
pub(crate) struct Lockstep {
    pub(crate) shared: Shared,
    pub(crate) shard: usize,
}

impl ThreadSpawner for Lockstep {
    fn run(&mut self, name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let mut world = self.shared.lock();
        let number = world.workers.threads.0.len();
        world.act(Actor("thread of a handler", number));
        if world.fault(20) {
            world.note("no thread is to be had", 0, 0);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let state = ThreadState::Waiting(Duration::ZERO);
        let baton = Arc::new(Baton { state: Mutex::new(state), moved: Condvar::new() });
        let shard = self.shard;
        let context =
            ThreadContext { shared: self.shared.clone(), shard, baton: Arc::clone(&baton) };
        let handle = std::thread::Builder::new().name(name.clone()).spawn(move || {
            let shared = context.shared.clone();
            let baton = Arc::clone(&context.baton);
            let turn = baton.wait_while(|state| state != ThreadState::Running && !shared.crashed());
            THREAD_CONTEXT.set(Some(context));
            if turn == ThreadState::Running {
                body();
            }
            baton.set(ThreadState::Ended);
        })?;
        let thread = Thread { name, shard, baton, handle: Some(handle), handed: false };
        world.workers.threads.0.push(thread);
        let delay = world.chance.time(Duration::from_micros(20), Duration::from_millis(5));
        world.note("a thread starts: thread", number, 0);
        world.after(delay, ScheduledEvent::Thread(number));
        Ok(())
    }

    fn handed(&mut self, name: &str) {
        let mut world = self.shared.lock();
        let mut threads = world.workers.threads.0.iter_mut().rev();
        let found = threads.find(|it| it.shard == self.shard && it.name == name);
        if let Some(thread) = found {
            thread.handed = true;
        }
    }
}

/// Waits until each thread that was sent something has received it, in the order of their starts, and schedules their
/// next steps.
pub(crate) fn deliver_handed(shared: &Shared) {
    let mut world = shared.lock();
    for number in 0..world.workers.threads.0.len() {
        let thread = &mut world.workers.threads.0[number];
        if !thread.handed {
            continue;
        }
        // The thread receives it without the lock of the world.
        let state = thread.baton.wait_while(|state| matches!(state, ThreadState::Resting { .. }));
        if state != ThreadState::Arrived {
            continue;
        }
        thread.handed = false;
        world.act(Actor("thread that was handed something", number));
        let delay = world.chance.time(Duration::from_micros(1), Duration::from_millis(1));
        world.note("a thread has found something: thread", number, 0);
        world.after(delay, ScheduledEvent::Thread(number));
    }
}

/// Passes the baton to a thread and waits until it returns the baton. No loop may run meanwhile. A thread whose shard
/// has ended does not continue.
pub(crate) fn go_on(shared: &Shared, number: usize) {
    let (baton, shard, wake_flag) = {
        let mut world = shared.lock();
        let shard = world.workers.threads.0[number].shard;
        if world.loops[shard].is_gone() {
            return;
        }
        world.note("a thread goes on: thread", number, 0);
        let baton = Arc::clone(&world.workers.threads.0[number].baton);
        (baton, shard, world.loops[shard].wake_flag_of_next())
    };
    baton.set(ThreadState::Running);
    match baton.wait_while(|state| state == ThreadState::Running) {
        ThreadState::Waiting(time) => shared.lock().after(time, ScheduledEvent::Thread(number)),
        ThreadState::Resting { mail } => {
            let mut looked = 0;
            let settled = || wake_flag.as_ref().is_none_or(|wake_flag| wake_flag.is_settled());
            // The first message wakes a loop that sleeps. If it does not, a check reports that.
            while shared.lock().loops[shard].mail_waiting() < mail || !settled() {
                looked += 1;
                if looked > LOOKS_MAX {
                    break;
                }
                std::thread::yield_now();
            }
        }
        ThreadState::Running | ThreadState::Arrived => {
            unreachable!("only who rests finds something")
        }
        ThreadState::Ended => {
            let handle = shared.lock().workers.threads.0[number].handle.take();
            if let Some(handle) = handle {
                // Panics of the handler are caught inside the thread, so the result contains nothing of interest.
                drop(handle.join());
            }
        }
    }
}

/// Ends all threads, as when the daemon ends.
pub(crate) fn end_all(shared: &Shared) {
    shared.crash();
    let handles: Vec<_> = {
        let mut world = shared.lock();
        let threads = world.workers.threads.0.iter_mut();
        threads.map(|it| (Arc::clone(&it.baton), it.handle.take())).collect()
    };
    for (baton, handle) in handles {
        // Under the lock, so that a thread that has just tested the condition is not missed.
        drop(baton.lock());
        baton.moved.notify_all();
        if let Some(handle) = handle {
            drop(handle.join());
        }
    }
}
