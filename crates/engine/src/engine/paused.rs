//! Back-pressure: clients of message protocols are paused, and not rejected, while the queue of
//! their pool is full. Whether one may send is its [`Permit`](flow::permit::Permit).
//!
//! Paused clients are not read. They wait in the order in which they were paused. Free room is divided equally among as
//! many of them as it has places, and stays reserved for them until they have used it. A pool whose replies go on to
//! another pool has room when the other pool has room.

use std::collections::BTreeMap;

use flow::ids::SessionId;
use flow::permit::Grant;
use pool::Room;

/// Clients that wait for room in one pool, in order.
#[derive(Debug, Default)]
pub(super) struct PausedClients {
    clients: BTreeMap<u64, PausedClient>,
    /// A grant was used since the end of the last iteration. Its request may have been rejected before it needed room.
    pub(super) has_spent: bool,
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

    pub(super) fn remove(&mut self, ticket: u64) {
        self.clients.remove(&ticket);
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// The ticket and the bytes of the first client.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        self.clients.first_key_value().map(|(ticket, client)| (*ticket, client.bytes))
    }

    /// Removes the clients that have room, and appends them to `woken` with their grants. `behind` returns the part of a
    /// room that is left for the client with a ticket.
    pub(super) fn take_next(
        &mut self,
        mut room: Room,
        behind: impl Fn(Room, u64) -> Room,
        woken: &mut Vec<(SessionId, Grant)>,
    ) {
        let waiting = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        let count = room.requests.min(waiting);
        let share = room.requests.checked_div(count).unwrap_or(0).min(REQUESTS_MAX);
        for _ in 0..count {
            let Some(first) = self.clients.first_entry() else { return };
            let (ticket, PausedClient { session, bytes }) = (*first.key(), *first.get());
            let left = behind(room, ticket);
            if !left.fits(bytes) {
                return;
            }
            let requests = share.min(left.requests);
            room.requests -= requests;
            room.bytes -= bytes;
            first.remove();
            woken.push((session, Grant { ticket, requests, bytes }));
        }
    }
}

#[cfg(test)]
mod tests {
    use exchange::Place;

    use super::*;

    fn session(index: u32) -> SessionId {
        SessionId::new(0, Place::new(index, 0))
    }

    fn paused(bytes: &[usize]) -> PausedClients {
        let mut paused = PausedClients::default();
        for (&bytes, index) in bytes.iter().zip(0_u32..) {
            paused.insert(index.into(), session(index), bytes);
        }
        paused
    }

    fn woken(paused: &mut PausedClients, requests: u32, bytes: usize) -> Vec<(u32, u32)> {
        let mut woken = Vec::new();
        paused.take_next(Room { requests, bytes }, |room, _| room, &mut woken);
        woken.iter().map(|(session, grant)| (session.place.index, grant.requests)).collect()
    }

    #[test]
    fn room_is_shared_equally_by_those_who_wait_longest() {
        let mut paused = paused(&[10; 5]);
        assert_eq!(woken(&mut paused, 0, 1000), []);
        assert_eq!(woken(&mut paused, 2, 1000), [(0, 1), (1, 1)]);
        assert_eq!(woken(&mut paused, 100, 10), [(2, 33)]);
        assert_eq!(woken(&mut paused, 7, 1000), [(3, 3), (4, 3)]);
        assert_eq!(paused.len(), 0);
    }

    #[test]
    fn a_large_request_waits_for_its_bytes_and_nobody_passes_it() {
        let mut paused = paused(&[500, 1]);
        assert_eq!(woken(&mut paused, 9, 499), []);
        assert_eq!(woken(&mut paused, 9, 501), [(0, 4), (1, 4)]);
    }

    #[test]
    fn one_that_was_granted_room_and_had_none_is_the_first_again() {
        let mut paused = paused(&[1; 3]);
        assert_eq!(woken(&mut paused, 1, 9), [(0, 1)]);
        paused.insert(0, session(0), 1);
        assert_eq!(woken(&mut paused, 1, 9), [(0, 1)]);
        assert_eq!(woken(&mut paused, 1, 9), [(1, 1)]);
    }
}
