//! Slots of processes that serve one request each: what a process is started for, and what is left of
//! the slot when it has ended.

use super::program::{Phase, Program};
use super::stderr::Stderr;
use flow::upward::Upward;

impl Program {
    /// What its process was started for and never got.
    pub(super) fn give_back(&mut self, up: &mut Vec<Upward>) {
        if let Some((request, form)) = self.pending.take() {
            let (id, payload) = (request.id, request.payload);
            up.push(Upward::Again { id, payload, form, failed: None });
        }
    }

    /// Its process has gone, and another may be started for the next request.
    pub(super) fn empty(&mut self) {
        self.phase = Phase::Empty;
        self.pid = None;
        self.link = None;
        self.stderr = Stderr::default();
        self.prints = Stderr::default();
        self.exit = None;
        self.killed_for = None;
    }
}
