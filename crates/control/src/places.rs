//! Places for connections: who may have how many.
//!
//! A connection is anonymous until a request on it was authenticated. Anonymous connections have at most half
//! of the places, and the oldest of them is closed when there is no place for a new one. So clients that
//! connect and send nothing cannot keep those out that may control the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// An anonymous connection is not closed for another one before this has passed, so that each has the time
/// to send its request.
const AGE_MIN: Duration = Duration::from_millis(100);

/// The places of an address.
#[derive(Debug)]
pub(crate) struct Places {
    connections: usize,
    anonymous: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    trusted: BTreeSet<u64>,
    /// In the order in which they were accepted.
    anonymous: BTreeMap<u64, (Instant, Arc<Notify>)>,
    next: u64,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
    closed: Arc<Notify>,
}

impl Places {
    pub(crate) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            connections,
            anonymous: (connections / 2).max(1),
            state: Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place. `trusted` when the connection itself proves who the client is.
    pub(crate) async fn take(self: &Arc<Self>, trusted: bool) -> Arc<Place> {
        loop {
            let due = match self.try_take(trusted, Instant::now()) {
                Ok(place) => return Arc::new(place),
                Err(due) => due,
            };
            match due {
                Some(due) => drop(timeout_at(due, self.freed.notified()).await),
                None => self.freed.notified().await,
            }
        }
    }

    /// A place, or when the oldest anonymous connection can be closed for one.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        trusted: bool,
        now: Instant,
    ) -> Result<Place, Option<Instant>> {
        let mut state = self.state();
        let is_full = state.trusted.len() + state.anonymous.len() >= self.connections;
        if is_full || !trusted && state.anonymous.len() >= self.anonymous {
            let (_, (since, _)) = state.anonymous.first_key_value().ok_or(None)?;
            let due = *since + AGE_MIN;
            if now < due {
                return Err(Some(due));
            }
            if let Some((_, (_, closed))) = state.anonymous.pop_first() {
                closed.notify_one();
            }
        }
        let (id, closed) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        if trusted {
            state.trusted.insert(id);
        } else {
            state.anonymous.insert(id, (now, Arc::clone(&closed)));
        }
        Ok(Place { places: Arc::clone(self), id, closed })
    }
}

impl Place {
    /// A request was authenticated: the connection is no longer closed for another one.
    pub(crate) fn trust(&self) {
        let mut state = self.places.state();
        if state.anonymous.remove(&self.id).is_some() {
            state.trusted.insert(self.id);
            drop(state);
            self.places.freed.notify_one();
        }
    }

    /// Waits until the connection is closed for another one.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state();
        if !state.trusted.remove(&self.id) {
            state.anonymous.remove(&self.id);
        }
        drop(state);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a connection was closed for another one.
    fn is_closed(place: &Place) -> bool {
        let closed = std::pin::pin!(place.closed());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        closed.poll(&mut context).is_ready()
    }

    #[tokio::test(start_paused = true)]
    async fn anonymous_connections_have_half_of_the_places_and_the_oldest_is_closed() {
        let places = Places::new(4);
        let begun = Instant::now();
        let (first, second) = (places.take(false).await, places.take(false).await);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let third = places.take(false).await;
        assert_eq!(begun.elapsed(), AGE_MIN, "the first had time to send a request");
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        let unix = [places.take(true).await, places.take(true).await];
        drop(first);
        assert!(!unix.iter().any(|it| is_closed(it)) && !is_closed(&second));
        let _another = places.take(true).await;
        assert!(is_closed(&second), "an anonymous connection makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn an_authenticated_connection_is_not_closed_for_another_one() {
        let places = Places::new(2);
        let first = places.take(false).await;
        first.trust();
        let second = places.take(false).await;
        let third = places.take(false).await;
        assert!(!is_closed(&first) && is_closed(&second));
        third.trust();
        // All places are of authenticated clients: the next connection waits for the end of one.
        let waits = tokio::time::timeout(Duration::from_secs(60), places.take(false)).await;
        assert!(waits.is_err());
        drop(first);
        places.take(false).await;
        assert!(!is_closed(&third));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_with_one_place_serves_one_after_the_other() {
        let places = Places::new(1);
        let first = places.take(false).await;
        let second = places.take(false).await;
        assert!(is_closed(&first) && !is_closed(&second));
        second.trust();
        drop((first, second));
        assert!(!is_closed(&*places.take(true).await));
    }
}
