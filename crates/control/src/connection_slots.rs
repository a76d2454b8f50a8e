//! Limits the number of connections of each kind of client.
//!
//! A connection is anonymous until a request on it is authenticated. Many anonymous connections are allowed, because
//! they cost little: their requests are parsed and answered from shared pages. If there are too many, the oldest is
//! closed. So clients that connect and send nothing cannot block the clients that may control the daemon. An
//! authenticated connection is never closed for another one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connections of an address.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    trusted_max: usize,
    anonymous_max: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    trusted: BTreeSet<u64>,
    /// The anonymous connections, in the order in which they were accepted.
    anonymous: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

/// The place of one connection. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    id: u64,
    closed: Arc<Notify>,
}

impl ConnectionSlots {
    pub(crate) fn new(trusted_max: usize, anonymous_max: usize) -> Arc<Self> {
        Arc::new(Self {
            trusted_max,
            anonymous_max: anonymous_max.max(1),
            state: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for an unauthenticated client. It never waits: if there are too many such connections, the oldest
    /// is closed.
    pub(crate) fn take_anonymous(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let mut state = self.state();
        while state.anonymous.len() >= self.anonymous_max {
            state.close_oldest();
        }
        let (id, closed) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        state.anonymous.insert(id, Arc::clone(&closed));
        Arc::new(ConnectionSlot { places: Arc::clone(self), id, closed })
    }

    /// Waits for a place for a client that is authenticated by its connection.
    pub(crate) async fn take_trusted(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let id = {
            let mut state = self.state();
            state.next += 1;
            state.next - 1
        };
        let place = ConnectionSlot { places: Arc::clone(self), id, closed: Arc::default() };
        place.trust().await;
        Arc::new(place)
    }

    /// Closes the oldest anonymous connection. Returns false if there is none.
    pub(crate) fn close_oldest(&self) -> bool {
        self.state().close_oldest()
    }
}

impl State {
    fn close_oldest(&mut self) -> bool {
        let oldest = self.anonymous.pop_first();
        oldest.is_some_and(|(_, closed)| {
            closed.notify_one();
            true
        })
    }
}

impl ConnectionSlot {
    /// Marks the connection as authenticated, so that it is no longer closed for another one. Waits while the maximum
    /// number of authenticated connections is reached.
    pub(crate) async fn trust(&self) {
        while !self.try_trust() {
            self.places.freed.notified().await;
        }
    }

    fn try_trust(&self) -> bool {
        let mut state = self.places.state();
        let has_room = state.trusted.len() < self.places.trusted_max;
        if has_room && state.trusted.insert(self.id) {
            state.anonymous.remove(&self.id);
        }
        has_room || state.trusted.contains(&self.id)
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.places.state().trusted.contains(&self.id)
    }

    /// Waits until the connection must be closed for another one.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.places.state();
        let was_trusted = state.trusted.remove(&self.id);
        state.anonymous.remove(&self.id);
        drop(state);
        if was_trusted {
            self.places.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ready(future: impl Future) -> bool {
        let future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        future.poll(&mut context).is_ready()
    }

    /// Whether a connection was closed for another one.
    fn is_closed(place: &ConnectionSlot) -> bool {
        is_ready(place.closed())
    }

    #[test]
    fn an_anonymous_connection_never_waits_and_closes_the_oldest_when_there_are_too_many() {
        let places = ConnectionSlots::new(2, 3);
        let all: Vec<_> = (0..3).map(|_| places.take_anonymous()).collect();
        assert!(!all.iter().any(|it| is_closed(it)));
        let fourth = places.take_anonymous();
        let closed: Vec<_> = all.iter().map(|it| is_closed(it)).collect();
        assert_eq!(closed, [true, false, false]);
        assert!(!is_closed(&fourth));
        drop(all);
        let _others = [places.take_anonymous(), places.take_anonymous()];
        assert!(!is_closed(&fourth), "places become free");
    }

    #[test]
    fn an_authenticated_connection_is_not_closed_for_another_one() {
        let places = ConnectionSlots::new(1, 2);
        let first = places.take_anonymous();
        assert!(is_ready(first.trust()) && is_ready(first.trust()));
        let others: Vec<_> = (0..9).map(|_| places.take_anonymous()).collect();
        assert!(!is_closed(&first) && is_closed(&others[0]));
        // Authenticated clients wait only for each other.
        let last = others.last().expect("nine");
        assert!(!is_ready(last.trust()) && !is_ready(places.take_trusted()));
        drop(first);
        assert!(is_ready(last.trust()));
    }

    #[test]
    fn the_oldest_anonymous_connection_is_closed_on_demand() {
        let places = ConnectionSlots::new(1, 2);
        let (trusted, other) = (places.take_anonymous(), places.take_anonymous());
        assert!(is_ready(trusted.trust()));
        assert!(places.close_oldest() && !places.close_oldest());
        assert!(is_closed(&other) && !is_closed(&trusted));
    }
}
