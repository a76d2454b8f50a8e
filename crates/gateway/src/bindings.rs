//! Programs that are a connection's own: `dispatch = "session"`.
//!
//! ```text
//!   free ──first request──▶ bound ──client gone, all answered──▶ returning ──▶ free, or recycled
//!                             │ the program ends                     (reset frame, or its end)
//!                             ▼
//!                           lost: the client's later requests are refused
//! ```
//!
//! The pool sees one slot in use from the first request of a connection until its program is
//! returned. What the connection asks in between goes straight to its program.
//!
//! What it knows: sessions, workers and how many requests are between them. What it must never
//! know: a stream, a pool.

use std::collections::BTreeMap;

use exchange::WorkerId;

use crate::exchanges::SessionId;

/// Where a request of a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the pool, for it has no program yet.
    Pool,
    /// To its program.
    Worker(WorkerId),
    /// Nowhere: its program has ended, and with it whatever it knew of this connection.
    Lost,
}

/// What is to be done with the slot of a worker that has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It stays in use.
    Kept,
    /// Its client has gone: the program is returned.
    Return,
    /// It is free.
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Bound(SessionId),
    /// Its session is gone; answers may still come.
    Left,
    Returning,
}

#[derive(Debug)]
struct Binding {
    state: State,
    in_flight: u32,
}

/// The bindings of one pool.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    workers: BTreeMap<WorkerId, Binding>,
    /// The worker of each session; none when it is lost.
    sessions: BTreeMap<(u32, u32), Option<WorkerId>>,
}

const fn key(session: SessionId) -> (u32, u32) {
    (session.index, session.generation)
}

impl Bindings {
    pub(crate) fn way(&self, session: SessionId) -> Way {
        match self.sessions.get(&key(session)) {
            None => Way::Pool,
            Some(Some(worker)) => Way::Worker(*worker),
            Some(None) => Way::Lost,
        }
    }

    /// A request is on its way to a worker; `session` is whose, where it is a session's.
    pub(crate) fn dispatched(&mut self, worker: WorkerId, session: Option<SessionId>) {
        let state = session.map_or(State::Left, State::Bound);
        let binding = self.workers.entry(worker).or_insert(Binding { state, in_flight: 0 });
        binding.in_flight += 1;
        if let State::Bound(session) = binding.state {
            self.sessions.insert(key(session), Some(worker));
        }
    }

    /// A worker has answered.
    pub(crate) fn released(&mut self, worker: WorkerId) -> Slot {
        let Some(binding) = self.workers.get_mut(&worker) else { return Slot::Free };
        binding.in_flight = binding.in_flight.saturating_sub(1);
        match (binding.state, binding.in_flight) {
            (State::Returning, 0) => {
                self.workers.remove(&worker);
                Slot::Free
            }
            (State::Left, 0) => {
                binding.state = State::Returning;
                Slot::Return
            }
            _ => Slot::Kept,
        }
    }

    /// A worker takes no more requests, or is gone.
    pub(crate) fn lost(&mut self, worker: WorkerId) {
        if let Some(Binding { state: State::Bound(session), .. }) = self.workers.remove(&worker) {
            self.sessions.insert(key(session), None);
        }
    }

    /// A session has gone, or may ask nothing more. Returns its worker if that has nothing to do.
    pub(crate) fn left(&mut self, session: SessionId) -> Option<WorkerId> {
        let worker = self.sessions.remove(&key(session))??;
        let binding = self.workers.get_mut(&worker)?;
        let idle = binding.in_flight == 0;
        binding.state = if idle { State::Returning } else { State::Left };
        idle.then_some(worker)
    }

    /// All sessions with a program.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().map(|&(index, generation)| SessionId { index, generation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn session(index: u32) -> SessionId {
        SessionId { index, generation: 1 }
    }

    fn worker(index: u32) -> WorkerId {
        WorkerId::new(index, 1)
    }

    #[test]
    fn a_program_stays_with_its_connection_until_that_has_gone() {
        let mut bindings = Bindings::default();
        assert_eq!(bindings.way(session(1)), Way::Pool);
        bindings.dispatched(worker(7), Some(session(1)));
        assert_eq!(bindings.way(session(1)), Way::Worker(worker(7)));
        assert_eq!(bindings.released(worker(7)), Slot::Kept);
        assert_eq!(bindings.left(session(1)), Some(worker(7)), "it has nothing to do");
        bindings.dispatched(worker(7), None);
        assert_eq!(bindings.released(worker(7)), Slot::Free, "its reset was answered");
        assert_eq!(bindings.way(session(1)), Way::Pool);
    }

    #[test]
    fn what_a_client_left_behind_is_answered_before_its_program_is_returned() {
        let mut bindings = Bindings::default();
        bindings.dispatched(worker(7), Some(session(1)));
        bindings.dispatched(worker(7), Some(session(1)));
        assert_eq!(bindings.left(session(1)), None);
        assert_eq!(bindings.released(worker(7)), Slot::Kept);
        assert_eq!(bindings.released(worker(7)), Slot::Return);
    }

    #[test]
    fn a_program_that_ends_is_lost_to_its_connection() {
        let mut bindings = Bindings::default();
        bindings.dispatched(worker(7), Some(session(1)));
        bindings.lost(worker(7));
        assert_eq!(bindings.way(session(1)), Way::Lost);
        assert_eq!(bindings.released(worker(7)), Slot::Free, "the pool knows what to make of it");
        assert_eq!(bindings.left(session(1)), None);
        assert_eq!(bindings.way(session(1)), Way::Pool);
    }

    #[test]
    fn a_request_from_within_gets_a_program_for_itself() {
        let mut bindings = Bindings::default();
        bindings.dispatched(worker(7), None);
        assert_eq!(bindings.released(worker(7)), Slot::Return);
    }
}
