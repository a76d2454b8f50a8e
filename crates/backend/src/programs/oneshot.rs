//! Slots of processes that serve one request each: what a process is started for, and what is left of
//! the slot when it has ended.

use super::program::{Phase, Program};
use super::stderr::Stderr;
use flow::backend_event::BackendEvent;

impl Program {
    /// What its process was started for and never got.
    pub(super) fn give_back(&mut self, events: &mut Vec<BackendEvent>) {
        if let Some((request, meta)) = self.pending.take() {
            let (id, payload) = (request.id, request.payload);
            events.push(BackendEvent::Retry { id, payload, meta, failed: None });
        }
    }

    /// Its process has gone, and another may be started for the next request.
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
