//! Slots of processes that serve one request each: the request that a process is started for, and how the slot is
//! emptied when the process has ended.

use super::program::{Phase, Program};
use super::stderr::Stderr;
use flow::backend_event::BackendEvent;

impl Program {
    /// Returns the request that the process was started for, if it was not sent.
    pub(super) fn give_back(&mut self, events: &mut Vec<BackendEvent>) {
        if let Some((request, meta)) = self.pending.take() {
            let (id, payload) = (request.id, request.payload);
            events.push(BackendEvent::Retry { id, payload, meta, failed: None });
        }
    }

    /// Empties the slot after its process has ended. Another process may be started for the next request.
    pub(super) fn empty(&mut self) {
        self.phase = Phase::Empty;
        self.pid = None;
        self.pipes = None;
        self.stderr = Stderr::default();
        self.prints = Stderr::default();
        self.exit = None;
        self.killed_for = None;
    }
}
