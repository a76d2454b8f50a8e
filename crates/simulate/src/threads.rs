//! The threads of handlers, in lockstep.
//!
//! They are threads of the system, because a handler blocks. Only one thread of a world runs at a time: the one that
//! has the *baton*. The thread of the loop passes it on when the time of the next step of a handler has come, and waits
//! until it is returned:
//!
//! ```text
//!   Waiting(time) ◀── pass(time) ─┐      ┌── Arrived: a batch or the end was received
//!        │ go_on                  │      │ go_on        ▲
//!        ▼                        │      ▼              │ handed
//!     Running ────────────────────┴───────── rest ───▶ Resting, in the gateway's `recv`
//!        └── the body has returned ──▶ Ended
//! ```
//!
//! Between its last step and `recv` a thread only sends mail. Its handler reports the number of messages in advance,
//! and the thread of the loop continues when they have arrived.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// It waits for the baton, which it gets after this time.
    Waiting(Duration),
    /// It has received something, and waits for the baton.
    Arrived,
    Running,
    /// It waits in `recv`. The state is reached when the mailbox holds `mail` messages.
    Resting {
        mail: usize,
    },
    Ended,
}

#[derive(Debug)]
pub(crate) struct Baton {
    pub(crate) state: Mutex<ThreadState>,
    pub(crate) moved: Condvar,
}

impl Baton {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ThreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, state: ThreadState) {
        *self.lock() = state;
        self.moved.notify_all();
    }

    /// Waits while `still` is true. Returns the new state.
    pub(crate) fn wait_while(&self, still: impl Fn(ThreadState) -> bool) -> ThreadState {
        let mut state = self.lock();
        while still(*state) {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *state
    }
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// The shard that started it and receives its messages.
    pub(crate) shard: usize,
    pub(crate) baton: Arc<Baton>,
    pub(crate) handle: Option<JoinHandle<()>>,
    /// Whether something was sent to it.
    pub(crate) handed: bool,
}

/// All threads of a world, in the order of their starts.
#[derive(Debug, Default)]
pub(crate) struct Threads(pub(crate) Vec<Thread>);

impl Threads {
    /// Returns the number of threads that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.0.iter().filter(|thread| *thread.baton.lock() != ThreadState::Ended).count()
    }
}
