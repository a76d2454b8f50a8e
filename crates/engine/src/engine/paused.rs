//! Back-pressure: clients of message protocols are paused, and not rejected, while the queue of
//! their pool is full. Whether one may send is its [`Permit`](flow::permit::Permit).
//!
//! Paused clients are not read. They wait in the order in which they were paused; the room that comes
//! free is shared equally among as many of them as it has places. A pool whose replies go on to another
//! pool has room when the other has.

use std::collections::BTreeMap;

use pool::Room;

use flow::ids::SessionId;

/// Clients that wait for room in one pool, in order.
#[derive(Debug, Default)]
pub(super) struct PausedClients {
    next: u64,
    pub(super) clients: BTreeMap<u64, PausedClient>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PausedClient {
    session: SessionId,
    /// The maximum size of its next request, in bytes.
    bytes: usize,
}

impl PausedClients {
    pub(super) fn push(&mut self, session: SessionId, bytes: usize) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.clients.insert(ticket, PausedClient { session, bytes });
        ticket
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Removes the clients that have room, and returns the number of requests that each may send.
    pub(super) fn take_next(&mut self, mut room: Room, woken: &mut Vec<(SessionId, u32)>) {
        let waiting = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        let count = room.requests.min(waiting);
        let share = room.requests.checked_div(count).unwrap_or(0);
        for _ in 0..count {
            let Some(first) = self.clients.first_entry() else { return };
            let PausedClient { session, bytes } = *first.get();
            if !room.fits(bytes) {
                return;
            }
            room.bytes -= bytes;
            first.remove();
            woken.push((session, share));
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

    fn woken(paused: &mut PausedClients, requests: u32, bytes: usize) -> Vec<(u32, u32)> {
        let mut woken = Vec::new();
        paused.take_next(Room { requests, bytes }, &mut woken);
        woken.iter().map(|(session, share)| (session.place.index, *share)).collect()
    }

    #[test]
    fn room_is_shared_equally_by_those_who_wait_longest() {
        let mut paused = PausedClients::default();
        (0..5).for_each(|index| _ = paused.push(session(index), 10));
        assert_eq!(woken(&mut paused, 0, 1000), []);
        assert_eq!(woken(&mut paused, 2, 1000), [(0, 1), (1, 1)]);
        assert_eq!(woken(&mut paused, 100, 10), [(2, 33)]);
        assert_eq!(woken(&mut paused, 7, 1000), [(3, 3), (4, 3)]);
        assert_eq!(paused.len(), 0);
    }

    #[test]
    fn a_large_request_waits_for_its_bytes_and_nobody_passes_it() {
        let mut paused = PausedClients::default();
        paused.push(session(0), 500);
        paused.push(session(1), 1);
        assert_eq!(woken(&mut paused, 9, 499), []);
        assert_eq!(woken(&mut paused, 9, 501), [(0, 4), (1, 4)]);
    }
}
