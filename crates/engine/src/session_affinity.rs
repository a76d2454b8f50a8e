//! Programs that are a connection's own: `dispatch = "session"`.
//!
//! ```text
//!   free ──first request──▶ bound ──client gone, all answered──▶ returning ──▶ free, or recycled
//!                             │ the program ends                  │  (reset frame, or its end)
//!                             ▼                                   └─refused─▶ spoiled ─▶ recycled
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

use flow::ids::SessionId;
use flow::window::Window;

/// Where a request of a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
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
    /// It could not be told to forget, or its answer to that not from other words: it is replaced.
    Replace,
    /// It is free.
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Bound(SessionId),
    /// Its session is gone; answers may still come.
    Left,
    Returning,
    /// It was not told to forget, or refused to.
    Spoiled,
}

#[derive(Debug)]
struct Binding {
    state: State,
    in_flight: u32,
    /// It has one request, its first: if that never reached it, nothing has.
    is_first: bool,
    /// It is not told to forget: it said things unasked that could not be told from its answer to
    /// that, or it cannot be told.
    is_replaced: bool,
    /// What it says unasked, on its way to another shard.
    window: Window,
}

/// What has become of a session's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Berth {
    Worker(WorkerId),
    /// It has ended; `untouched` when only its first request was on the way to it.
    Lost {
        worker: WorkerId,
        untouched: bool,
    },
}

/// The affinity of one pool.
#[derive(Debug, Default)]
pub(crate) struct SessionAffinity {
    workers: BTreeMap<WorkerId, Binding>,
    sessions: BTreeMap<SessionId, Berth>,
    /// No session is bound any more.
    is_closing: bool,
}

impl SessionAffinity {
    pub(crate) fn way(&self, session: SessionId) -> Way {
        match self.sessions.get(&session) {
            None => Way::Pool,
            Some(Berth::Worker(worker)) => Way::Worker(*worker),
            Some(Berth::Lost { .. }) => Way::Lost,
        }
    }

    /// A request is on its way to a worker; `session` is whose, where it is a session's.
    pub(crate) fn dispatched(&mut self, worker: WorkerId, session: Option<SessionId>) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.in_flight += 1;
            binding.is_first = false;
            return;
        }
        // One that has a program keeps that, whatever else of it reaches others.
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
            self.sessions.insert(session, Berth::Worker(worker));
        }
    }

    /// A request of this session never reached its worker, which is not trusted or gone. Nothing is
    /// lost when no other did.
    pub(crate) fn returned(&mut self, worker: WorkerId, session: Option<SessionId>) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.in_flight = binding.in_flight.saturating_sub(1);
            if binding.in_flight == 0
                && let Some(Binding { state: State::Bound(bound), .. }) =
                    self.workers.remove(&worker)
                && self.way(bound) == Way::Worker(worker)
            {
                self.sessions.remove(&bound);
            }
        }
        if let Some(session) = session
            && matches!(self.sessions.get(&session), Some(Berth::Lost { untouched: true, .. }))
        {
            self.sessions.remove(&session);
        }
    }

    /// A worker did not take the order to forget.
    pub(crate) fn spoiled(&mut self, worker: WorkerId) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.state = State::Spoiled;
        }
    }

    /// A worker has answered.
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

    /// Whether a worker is told to forget its client.
    pub(crate) fn is_returning(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|it| it.state == State::Returning)
    }

    /// A worker takes no more requests, or is gone.
    pub(crate) fn lost(&mut self, worker: WorkerId) {
        if let Some(Binding { state: State::Bound(session), in_flight, is_first, .. }) =
            self.workers.remove(&worker)
            && self.way(session) == Way::Worker(worker)
        {
            let untouched = is_first && in_flight == 1;
            self.sessions.insert(session, Berth::Lost { worker, untouched });
        }
    }

    /// The session whose program this worker was that has ended.
    pub(crate) fn client_of_lost(&self, worker: WorkerId) -> Option<SessionId> {
        let is_its =
            |berth: &Berth| matches!(berth, Berth::Lost { worker: it, .. } if *it == worker);
        self.sessions.iter().find(|(_, berth)| is_its(berth)).map(|(session, _)| *session)
    }

    /// The session that this worker is the own of.
    pub(crate) fn client(&self, worker: WorkerId) -> Option<SessionId> {
        match self.workers.get(&worker)?.state {
            State::Bound(session) => Some(session),
            State::Left | State::Returning | State::Spoiled => None,
        }
    }

    /// A worker is not told to forget its client, but replaced.
    pub(crate) fn replace(&mut self, worker: WorkerId) {
        if let Some(binding) = self.workers.get_mut(&worker) {
            binding.is_replaced = true;
        }
    }

    /// So many bytes that a worker says unasked go to another shard. True when it is to wait.
    pub(crate) fn send(&mut self, worker: WorkerId, bytes: usize, window: usize) -> bool {
        self.workers.get_mut(&worker).is_some_and(|it| it.window.send(bytes, window))
    }

    /// So many were taken there. The worker that is to go on, if it waited for that.
    pub(crate) fn credit(
        &mut self,
        session: SessionId,
        bytes: usize,
        window: usize,
    ) -> Option<WorkerId> {
        self.own_of(session, |it| it.window.credit(bytes, window))
    }

    /// A session wants to hear what its worker says, or nothing for now. The worker, if it is to be
    /// told.
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
        let Way::Worker(worker) = self.way(session) else { return None };
        self.workers.get_mut(&worker).is_some_and(is).then_some(worker)
    }

    /// A session has gone, or may ask nothing more. What is to be done with its worker: nothing if
    /// that has still to answer.
    pub(crate) fn left(&mut self, session: SessionId) -> Option<(WorkerId, Slot)> {
        let Some(Berth::Worker(worker)) = self.sessions.remove(&session) else { return None };
        let binding = self.workers.get_mut(&worker)?;
        let idle = binding.in_flight == 0;
        binding.state = if idle { State::Returning } else { State::Left };
        let slot = if binding.is_replaced { Slot::Replace } else { Slot::Return };
        idle.then_some((worker, slot))
    }

    /// From now on a program is returned as soon as it has answered.
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
        assert_eq!(affinity.way(session(1)), Way::Pool);
        affinity.dispatched(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), Way::Worker(worker(7)));
        assert_eq!(affinity.released(worker(7)), Slot::Kept);
        assert_eq!(affinity.left(session(1)), Some((worker(7), Slot::Return)), "it is idle");
        affinity.dispatched(worker(7), None);
        assert_eq!(affinity.released(worker(7)), Slot::Free, "its reset was answered");
        assert_eq!(affinity.way(session(1)), Way::Pool);
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
        assert_eq!(affinity.way(session(1)), Way::Lost);
        assert_eq!(affinity.released(worker(7)), Slot::Free, "the pool knows what to make of it");
        assert_eq!(affinity.left(session(1)), None);
        assert_eq!(affinity.way(session(1)), Way::Pool);
    }

    #[test]
    fn a_first_request_that_reached_nobody_makes_no_program_anyones_own() {
        let mut affinity = SessionAffinity::default();
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.lost(worker(7));
        assert_eq!(affinity.way(session(1)), Way::Lost, "until it is known that it was not sent");
        affinity.returned(worker(7), Some(session(1)));
        assert_eq!(affinity.way(session(1)), Way::Pool);
        // And when the worker was lost before the request was given to it.
        affinity.dispatched(worker(7), Some(session(1)));
        affinity.returned(worker(7), Some(session(1)));
        affinity.dispatched(worker(8), Some(session(1)));
        affinity.lost(worker(7));
        assert_eq!(affinity.way(session(1)), Way::Worker(worker(8)));
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
        assert_eq!(affinity.way(session(1)), Way::Lost);
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
        assert_eq!(affinity.way(session(1)), Way::Worker(worker(6)));
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
