//! Back-pressure: clients of message protocols are paused, and not rejected, while the queue of
//! their pool is full. Whether one may send is its [`Permit`](flow::permit::Permit).
//!
//! Paused clients are not read. They wait in the order in which they were paused. Free room is divided equally among as
//! many of them as it has places, and stays reserved for them until they have used it. The clients of all pools of a
//! chain (`chain.rs`) wait in one order.

use std::collections::BTreeMap;

use flow::ids::SessionId;
use pool::Room;

/// Clients that wait for room in one pool, in order.
#[derive(Debug, Default)]
pub(super) struct PausedClients {
    clients: BTreeMap<u64, PausedClient>,
    /// A grant was used since the end of the last iteration. Its request may have been rejected before it needed room.
    pub(super) has_spent: bool,
    /// While clients are woken: the number of requests for each client that needs room in the pool.
    pub(super) share: u32,
    /// While clients are woken: the first client of those that need room in the pool has none.
    pub(super) is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct PausedClient {
    session: SessionId,
    /// The maximum memory of its next request, in bytes.
    bytes: usize,
}

/// The maximum number of requests in one grant: a pool that rejects requests has unlimited room.
const REQUESTS_MAX: u32 = 1 << 10;

impl PausedClients {
    pub(super) fn insert(&mut self, ticket: u64, session: SessionId, bytes: usize) {
        self.clients.insert(ticket, PausedClient { session, bytes });
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<SessionId> {
        self.clients.remove(&ticket).map(|client| client.session)
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// The ticket and the bytes of the first client.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        self.clients.first_key_value().map(|(ticket, client)| (*ticket, client.bytes))
    }

    /// Divides the room of the pool among the clients that wait for it here and in the pools before it.
    pub(super) fn divide(&mut self, room: Room, waiting: usize) {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        let count = room.requests.min(waiting);
        self.share = room.requests.checked_div(count).unwrap_or(1).min(REQUESTS_MAX);
        self.is_full = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_equally_by_those_who_wait_longest() {
        let share = |requests, waiting| {
            let mut paused = PausedClients::default();
            paused.divide(Room { requests, bytes: 1 }, waiting);
            paused.share
        };
        assert_eq!((share(2, 5), share(7, 3), share(6, 3), share(100, 1)), (1, 2, 2, 100));
        assert_eq!((share(0, 5), share(u32::MAX, 2)), (1, REQUESTS_MAX));
    }
}
