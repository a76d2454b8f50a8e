//! Flow control of the parts of one reply, between a handler thread and the shard.
//!
//! ```text
//!   thread: wait ─ blocks while too many bytes are unread, or the client is paused ─▶ mail
//!   shard:  took ─ the part was added to the client's output
//!           hold ─ pauses and resumes, as that output fills and empties
//!           leave ─ the rest is not needed: the next or current `wait` returns false
//! ```

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes of parts between the thread and the shard. A single part may be larger.
const AHEAD_MAX: usize = 256 << 10;

/// The state that the thread and its shard share.
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
        // The state is three plain values, which are valid after a panic at any point.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until a part of `bytes` bytes may be sent. Returns `false` if the reply is not needed any more.
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

    /// Records that the shard has received a part of `bytes` bytes.
    pub(super) fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_sub(bytes);
        self.changed.notify_one();
    }

    /// Pauses or resumes the thread.
    pub(super) fn pause_reply(&self, held: bool) {
        self.state().held = held;
        self.changed.notify_one();
    }

    /// Ends the reply: the rest is not needed.
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
        // A part that is larger than the limit is sent alone.
        assert!(flow.wait(10 * AHEAD_MAX));
    }

    #[test]
    fn whoever_waits_hears_that_nobody_wants_more() {
        let flow = Arc::new(Flow::default());
        flow.pause_reply(true);
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
        flow.pause_reply(true);
        let waits = thread::spawn({
            let flow = Arc::clone(&flow);
            move || flow.wait(1)
        });
        flow.pause_reply(false);
        assert!(waits.join().unwrap());
    }
}
