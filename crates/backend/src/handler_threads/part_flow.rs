//! The parts of one reply, from the thread of a handler to a client that takes them as they come.
//!
//! ```text
//!   thread: part ─ waits while too much is ahead, or its client takes nothing ─▶ mail
//!   shard:  took ─ the part went on to the client's output
//!           hold, go on ─ as that output fills and empties
//!           leave ─ nobody wants the rest: the thread hears it at its next part, or waiting for room
//! ```

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of parts between the thread and the shard at most; a single part may be larger.
const AHEAD_MAX: usize = 256 << 10;

/// Shared by the thread and its shard.
#[derive(Debug, Default)]
pub(super) struct Flow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ahead: usize,
    held: bool,
    left: bool,
}

impl Flow {
    fn state(&self) -> MutexGuard<'_, State> {
        // Three plain values: nobody can leave them half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a part of so many bytes may go. False when nobody wants it any more.
    pub(super) fn wait(&self, bytes: usize) -> bool {
        let full = |state: &mut State| {
            let over = state.ahead > 0 && state.ahead + bytes > AHEAD_MAX;
            !state.left && (state.held || over)
        };
        let waited = self.changed.wait_while(self.state(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.ahead += bytes;
        !state.left
    }

    /// The shard took a part of so many bytes.
    pub(super) fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_sub(bytes);
        self.changed.notify_one();
    }

    /// Whether the client's output is full.
    pub(super) fn hold(&self, held: bool) {
        self.state().held = held;
        self.changed.notify_one();
    }

    /// Nobody wants what is still to come.
    pub(super) fn leave(&self) {
        self.state().left = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_thread_is_never_further_ahead_than_it_may_be() {
        let flow = Arc::new(Flow::default());
        let (sender, parts) = channel();
        let thread = thread::spawn({
            let flow = Arc::clone(&flow);
            move || {
                for _ in 0..100 {
                    assert!(flow.wait(AHEAD_MAX / 4));
                    sender.send(AHEAD_MAX / 4).unwrap();
                }
            }
        });
        for bytes in parts {
            let ahead = flow.state().ahead;
            assert!(ahead <= AHEAD_MAX, "{ahead}");
            flow.took(bytes);
        }
        thread.join().unwrap();
        // One that is larger than the limit goes alone.
        assert!(flow.wait(10 * AHEAD_MAX));
    }

    #[test]
    fn whoever_waits_hears_that_nobody_wants_more() {
        let flow = Arc::new(Flow::default());
        flow.hold(true);
        let waits = thread::spawn({
            let flow = Arc::clone(&flow);
            move || flow.wait(1)
        });
        flow.leave();
        assert!(!waits.join().unwrap());
        assert!(!flow.wait(1), "and hears it again");
    }

    #[test]
    fn a_client_that_takes_again_lets_it_go_on() {
        let flow = Arc::new(Flow::default());
        flow.hold(true);
        let waits = thread::spawn({
            let flow = Arc::clone(&flow);
            move || flow.wait(1)
        });
        flow.hold(false);
        assert!(waits.join().unwrap());
    }
}
