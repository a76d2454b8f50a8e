//! Programs that serve one connection each: `dispatch = "session"`.
//!
//! ```text
//!   free ──first request──▶ bound ──client gone, all answered──▶ returning ──▶ free, or recycled
//!                             │ the program ends                  │  (reset frame, or its end)
//!                             ▼                                   └─refused─▶ spoiled ─▶ recycled
//!                           lost: later requests of the client are rejected
//! ```
//!
//! The slot of the program is in use from the first request of a connection until the program is returned to the
//! pool. Requests in between go to the program without queueing.
//!
//! What it depends on: ids of sessions and workers, and the number of requests in flight. What it must never depend
//! on: a stream, a pool.

use std::collections::BTreeMap;

use exchange::WorkerId;

use flow::ids::SessionId;
use flow::window::Window;

/// The destination of a request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionTarget {
    /// The queue of the pool: the session has no program yet.
    Pool,
    /// The program of the session.
    Worker(WorkerId),
    /// None: the program has ended, and with it the state of the connection.
    Lost,
}

/// What to do with the slot of a worker after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// It stays in use.
    Kept,
    /// The connection has ended: the program is reset and returned to the pool.
    Return,
    /// The program cannot be reset safely and is replaced.
    Replace,
    /// The slot is free.
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Bound(SessionId),
    /// The session is gone; replies may still arrive.
    Left,
    Returning,
    /// The reset was not delivered, or failed.
    Spoiled,
}

#[derive(Debug)]
struct Binding {
    state: State,
    in_flight: u32,
    /// Only the first request was sent: if it was not delivered, the program has received nothing.
    is_first: bool,
    /// The program is replaced instead of reset: it has no reset, or its unsolicited output cannot be distinguished
    /// from the reply to it.
    is_replaced: bool,
    /// Flow control of its unsolicited messages to another shard.
    window: Window,
}

/// The program of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Worker(WorkerId),
    /// It has ended. `untouched`: at most the first request was sent to it.
    Lost {
        worker: WorkerId,
        untouched: bool,
    },
}

/// The bindings of sessions to programs in one pool.
#[derive(Debug, Default)]
pub(crate) struct SessionAffinity {
    workers: BTreeMap<WorkerId, Binding>,
    sessions: BTreeMap<SessionId, Bound>,
    /// New sessions are no longer bound.
    is_closing: bool,
}

impl SessionAffinity {
    pub(crate) fn way(&self, session: SessionId) -> SessionTarget {
        match self.sessions.get(&session) {
            None => SessionTarget::Pool,
            Some(Bound::Worker(worker)) => SessionTarget::Worker(*worker),
            Some(Bound::Lost { .. }) => SessionTarget::Lost,
        }
    }

    /// Counts a request that is sent to a worker. `session`: the session that it belongs to, if any.
    pub(crate) fn dispatched(&mut self, worker: WorkerId, session: Option<SessionId>) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.in_flight += 1;
            binding.is_first = false;
            return;
        }
        // A session that has a program keeps it, even if another program gets one of its requests.
        let free = session.filter(|it| !self.is_closing && !self.sessions.contains_key(it));
        let state = free.map_or(State::Left, State::Bound);
        self.workers.insert(
            worker,
            Binding {
                state,
                in_flight: 1,
                is_first: true,
                is_replaced: false,
                window: Window::default(),
            },
        );
        if let Some(session) = free {
            self.sessions.insert(session, Bound::Worker(worker));
        }
    }

    /// A request of this session was not delivered, because its worker is gone or being killed. If no other request was
    /// delivered, the session is not lost.
    pub(crate) fn returned(&mut self, worker: WorkerId, session: Option<SessionId>) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.in_flight = binding.in_flight.saturating_sub(1);
            if binding.in_flight == 0
                && let Some(Binding { state: State::Bound(bound), .. }) =
                    self.workers.remove(&worker)
                && self.way(bound) == SessionTarget::Worker(worker)
            {
                self.sessions.remove(&bound);
            }
        }
        if let Some(session) = session
            && matches!(self.sessions.get(&session), Some(Bound::Lost { untouched: true, .. }))
        {
            self.sessions.remove(&session);
        }
    }

    /// The reset of a worker failed.
    pub(crate) fn spoiled(&mut self, worker: WorkerId) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.state = State::Spoiled;
        }
    }

    /// Counts a reply of a worker.
    pub(crate) fn released(&mut self, worker: WorkerId) -> Slot {
        let Some(binding) = self.workers.get_mut(&worker) else { return Slot::Free };
        binding.in_flight = binding.in_flight.saturating_sub(1);
        binding.is_first = false;
        match (binding.state, binding.in_flight) {
            (State::Returning, 0) => {
                self.workers.remove(&worker);
                Slot::Free
            }
            (State::Spoiled, 0) => {
                self.workers.remove(&worker);
                Slot::Replace
            }
            (State::Left, 0) if binding.is_replaced => {
                self.workers.remove(&worker);
                Slot::Replace
            }
            (State::Left, 0) => {
                binding.state = State::Returning;
                Slot::Return
            }
            _ => Slot::Kept,
        }
    }

    /// Whether a worker is being reset.
    pub(crate) fn is_returning(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|it| it.state == State::Returning)
    }

    /// A worker accepts no more requests, or is gone.
    pub(crate) fn lost(&mut self, worker: WorkerId) {
        if let Some(Binding { state: State::Bound(session), in_flight, is_first, .. }) =
            self.workers.remove(&worker)
            && self.way(session) == SessionTarget::Worker(worker)
        {
            let untouched = is_first && in_flight == 1;
            self.sessions.insert(session, Bound::Lost { worker, untouched });
        }
    }

    /// The session of a worker that has ended.
    pub(crate) fn client_of_lost(&self, worker: WorkerId) -> Option<SessionId> {
        let is_its = |affinity_target: &Bound| matches!(affinity_target, Bound::Lost { worker: it, .. } if *it == worker);
        self.sessions
            .iter()
            .find(|(_, affinity_target)| is_its(affinity_target))
            .map(|(session, _)| *session)
    }

    /// The session that a worker serves.
    pub(crate) fn client(&self, worker: WorkerId) -> Option<SessionId> {
        match self.workers.get(&worker)?.state {
            State::Bound(session) => Some(session),
            State::Left | State::Returning | State::Spoiled => None,
        }
    }

    /// The worker will be replaced instead of reset.
    pub(crate) fn replace(&mut self, worker: WorkerId) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.is_replaced = true;
        }
    }

    /// Counts bytes of unsolicited messages that go to another shard. `true`: the worker must pause.
    pub(crate) fn send(&mut self, worker: WorkerId, bytes: usize, window: usize) -> bool {
        self.workers.get_mut(&worker).is_some_and(|it| it.window.send(bytes, window))
    }

    /// Counts bytes that the other shard has consumed. Returns the worker if it must resume.
    pub(crate) fn credit(
        &mut self,
        session: SessionId,
        bytes: usize,
        window: usize,
    ) -> Option<WorkerId> {
        self.own_of(session, |it| it.window.credit(bytes, window))
    }

    /// A session pauses or resumes the output of its worker. Returns the worker if it must be notified.
    pub(crate) fn want(
        &mut self,
        session: SessionId,
        wanted: bool,
        window: usize,
    ) -> Option<WorkerId> {
        self.own_of(session, |it| it.window.want(wanted, window))
    }

    fn own_of(
        &mut self,
        session: SessionId,
        is: impl FnOnce(&mut Binding) -> bool,
    ) -> Option<WorkerId> {
        let SessionTarget::Worker(worker) = self.way(session) else { return None };
        self.workers.get_mut(&worker).is_some_and(is).then_some(worker)
    }

    /// A session is gone or submits no more requests. Returns what to do with its worker, unless replies are
    /// outstanding.
    pub(crate) fn left(&mut self, session: SessionId) -> Option<(WorkerId, Slot)> {
        let Some(Bound::Worker(worker)) = self.sessions.remove(&session) else { return None };
        let binding = self.workers.get_mut(&worker)?;
        let idle = binding.in_flight == 0;
        binding.state = if idle { State::Returning } else { State::Left };
        let slot = if binding.is_replaced { Slot::Replace } else { Slot::Return };
        idle.then_some((worker, slot))
    }

    /// From now on, programs are returned as soon as they have replied.
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
    }

    /// All sessions with a program.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use exchange::Place;

    use super::*;

    const fn session(index: u32) -> SessionId {
        SessionId::new(0, Place::new(index, 1))
    }

    fn worker(index: u32) -> WorkerId {
        WorkerId::new(index, 1)
    }

    #[test]
    fn a_program_stays_with_its_connection_until_that_has_gone() {
        let mut affinity = SessionAffinity::default();
        assert_eq!(affinity.way(session(1)), SessionTarget::Pool);
        affinity.dispatched(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), SessionTarget::Worker(worker(7)));
        assert_eq!(affinity.released(worker(7)), Slot::Kept);
        assert_eq!(affinity.left(session(1)), Some((worker(7), Slot::Return)), "it is idle");
        affinity.dispatched(worker(7), None);
        assert_eq!(affinity.released(worker(7)), Slot::Free, "its reset was answered");
        assert_eq!(affinity.way(session(1)), SessionTarget::Pool);
    }

    #[test]
    fn what_a_client_left_behind_is_answered_before_its_program_is_returned() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.dispatched(worker(7), Some(session(1)));
        assert_eq!(affinity.left(session(1)), None);
        assert_eq!(affinity.released(worker(7)), Slot::Kept);
        assert_eq!(affinity.released(worker(7)), Slot::Return);
    }

    #[test]
    fn a_program_that_ends_is_lost_to_its_connection() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.lost(worker(7));
        assert_eq!(affinity.way(session(1)), SessionTarget::Lost);
        assert_eq!(affinity.released(worker(7)), Slot::Free, "the pool knows what to make of it");
        assert_eq!(affinity.left(session(1)), None);
        assert_eq!(affinity.way(session(1)), SessionTarget::Pool);
    }

    #[test]
    fn a_first_request_that_reached_nobody_makes_no_program_anyones_own() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.lost(worker(7));
        assert_eq!(
            affinity.way(session(1)),
            SessionTarget::Lost,
            "until it is known that it was not sent"
        );
        affinity.returned(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), SessionTarget::Pool);
        // And when the worker was lost before the request was given to it.
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.returned(worker(7), Some(session(1)));
        affinity.dispatched(worker(8), Some(session(1)));
        affinity.lost(worker(7));
        assert_eq!(affinity.way(session(1)), SessionTarget::Worker(worker(8)));
        assert_eq!(affinity.released(worker(8)), Slot::Kept);
        assert_eq!(affinity.left(session(1)), Some((worker(8), Slot::Return)));
    }

    #[test]
    fn a_later_request_that_reached_nobody_is_not_given_to_a_program_that_knows_nothing() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.lost(worker(7));
        affinity.returned(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), SessionTarget::Lost);
    }

    #[test]
    fn a_program_that_refuses_to_forget_is_replaced() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        assert_eq!(affinity.released(worker(7)), Slot::Kept);
        assert_eq!(affinity.left(session(1)), Some((worker(7), Slot::Return)));
        affinity.dispatched(worker(7), None);
        affinity.spoiled(worker(7));
        assert_eq!(affinity.released(worker(7)), Slot::Replace);
    }

    #[test]
    fn a_program_that_spoke_unasked_is_not_asked_to_forget_but_replaced() {
        let mut affinity = SessionAffinity::default();
        for in_flight in [false, true] {
            affinity.dispatched(worker(7), Some(session(1)));
            assert_eq!(affinity.client(worker(7)), Some(session(1)));
            affinity.replace(worker(7));
            if in_flight {
                assert_eq!(affinity.left(session(1)), None);
                assert_eq!(affinity.client(worker(7)), None, "nobody hears it any more");
                assert_eq!(affinity.released(worker(7)), Slot::Replace);
            } else {
                assert_eq!(affinity.released(worker(7)), Slot::Kept);
                assert_eq!(affinity.left(session(1)), Some((worker(7), Slot::Replace)));
                affinity.lost(worker(7));
            }
        }
    }

    #[test]
    fn what_goes_to_another_shard_waits_for_credit_and_for_its_client() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        assert!(!affinity.send(worker(7), 60, 100));
        assert!(affinity.send(worker(7), 60, 100), "the window is full");
        assert_eq!(affinity.want(session(1), false, 100), None, "it waits already");
        assert_eq!(affinity.credit(session(1), 120, 100), None, "its client takes nothing");
        assert_eq!(affinity.want(session(1), true, 100), Some(worker(7)));
        assert_eq!(affinity.want(session(2), true, 100), None);
        assert_eq!(affinity.credit(session(2), 1, 100), None);
        affinity.left(session(1));
        assert_eq!(affinity.credit(session(1), 1, 100), None, "nobody is there any more");
    }

    #[test]
    fn no_program_becomes_anyones_own_once_all_have_left_or_beside_another() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(6), Some(session(1)));
        affinity.dispatched(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), SessionTarget::Worker(worker(6)));
        assert_eq!(affinity.released(worker(7)), Slot::Return);
        affinity.close();
        affinity.dispatched(worker(8), Some(session(2)));
        assert_eq!(affinity.released(worker(8)), Slot::Return);
    }

    #[test]
    fn a_request_from_within_gets_a_program_for_itself() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), None);
        assert_eq!(affinity.released(worker(7)), Slot::Return);
    }
}
