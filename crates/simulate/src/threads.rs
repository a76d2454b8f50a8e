//! Threads of handlers, in lockstep.
//!
//! They are threads of the system, for a handler blocks; but only one thread of a world runs at a
//! time, the one that has the *baton*. The loop's thread gives it away when the moment of a
//! handler's next step has come, and waits until it comes back:
//!
//! ```text
//!   Waiting(time) ◀── pass(time) ─┐      ┌── Arrived: a batch or the end was found
//!        │ go_on                  │      │ go_on        ▲
//!        ▼                        │      ▼              │ handed
//!     Running ────────────────────┴───────── rests ──▶ Resting, in the gateway's `recv`
//!        └── the body has returned ──▶ Ended
//! ```
//!
//! What a thread does between its last step and `recv` is to send mail; how many, its handler
//! knows, and the loop's thread goes on when so many are there.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Until the loop's thread gives it the baton, after so long.
    Waiting(Duration),
    /// It has found what it was handed, and waits for the baton.
    Arrived,
    Running,
    /// In `recv`, once the mailbox holds so many messages.
    Resting {
        mail: usize,
    },
    Ended,
}

#[derive(Debug)]
pub(crate) struct Baton {
    pub(crate) place: Mutex<Place>,
    pub(crate) moved: Condvar,
}

impl Baton {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, place: Place) {
        *self.lock() = place;
        self.moved.notify_all();
    }

    /// Waits until it is somewhere else than where `still` says.
    pub(crate) fn wait_while(&self, still: impl Fn(Place) -> bool) -> Place {
        let mut place = self.lock();
        while still(*place) {
            place = self.moved.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
        *place
    }
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// The shard that started it and hears of it.
    pub(crate) shard: usize,
    pub(crate) baton: Arc<Baton>,
    pub(crate) handle: Option<JoinHandle<()>>,
    /// Something was put where it finds it.
    pub(crate) handed: bool,
}

/// All threads of a world, in the order of their starts.
#[derive(Debug, Default)]
pub(crate) struct Threads(pub(crate) Vec<Thread>);

impl Threads {
    /// Threads that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.0.iter().filter(|thread| *thread.baton.lock() != Place::Ended).count()
    }
}
