//! Servers that are programs of ours: they come to an address and go from it.

use event::Context;
use exchange::{WorkerId, WorkerIndex};

use super::connection::ActiveRequest;
use super::fault::Fault;
use super::{ConnectionId, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// This worker listens there, and is called so.
    pub(crate) fn settle_at(&mut self, worker: WorkerId, address: event::Address, shown: &str) {
        let nowhere = || (event::Address::Unix(std::path::PathBuf::new()), String::new());
        *self.config.addresses.at_with(worker, nowhere) = (address, shown.to_owned());
    }

    /// Where it listens.
    pub(crate) fn home(&self, worker: WorkerId) -> Option<&event::Address> {
        self.config.addresses.get(worker).map(|(address, _)| address)
    }

    /// It was not the program that took this connection. Nothing was sent on it, and the program serves
    /// nobody any more.
    pub(crate) fn refuse(
        &mut self,
        io: &mut Context<'_>,
        connection: ConnectionId,
        events: &mut Vec<BackendEvent>,
    ) {
        self.lose(io, connection, Fault::Taken, events);
    }

    /// More connections wait to be accepted than the program asked for. The request goes back to the
    /// queue, and its slot stays taken for a while: to try at once again would be to try all the time.
    pub(super) fn backlog_full(
        &mut self,
        worker: WorkerId,
        flight: Option<ActiveRequest>,
        events: &mut Vec<BackendEvent>,
    ) {
        if !std::mem::replace(&mut self.has_crowded, true) {
            let program = self.address(worker);
            tracing::warn!(
                worker = program,
                "lets no more connections wait: lower `pipeline`, or raise its backlog"
            );
        }
        if let Some(ActiveRequest { id, payload, meta, .. }) =
            flight.filter(|flight| !flight.abandoned)
        {
            events.push(BackendEvent::Retry { id, payload, meta, failed: None });
        }
        self.crowded.push(worker);
    }

    /// Whether slots stay taken because backlogs were full.
    pub(crate) const fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// One of these slots is free again; gives whose.
    pub(crate) fn next_crowded(&mut self) -> Option<WorkerId> {
        self.crowded.pop()
    }

    /// There may be room in its backlog.
    pub(crate) fn try_crowded(&mut self, worker: WorkerId, events: &mut Vec<BackendEvent>) {
        self.release(worker, false, events);
    }

    /// It gets no further request, and ends once what it has is answered.
    pub(crate) fn drain(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) {
        self.retire(io, worker, events);
        self.try_end(worker, false, events);
    }

    /// It has gone: what it had goes back or ends.
    pub(crate) fn mark_gone(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) {
        self.retire(io, worker, events);
        let before = self.crowded.len();
        self.crowded.retain(|crowded| *crowded != worker);
        for _ in self.crowded.len()..before {
            self.release(worker, false, events);
        }
        for id in self.connections.places().into_iter().map(ConnectionId) {
            match self.connection(id) {
                Some(connection) if connection.worker == worker && connection.flight.is_some() => {
                    self.lose(io, id, Fault::Ended, events);
                }
                Some(connection) if connection.worker == worker => self.close(io, id),
                _ => {}
            }
        }
        self.try_end(worker, false, events);
    }

    /// Whose a link is.
    pub(crate) fn worker_of(&mut self, id: ConnectionId) -> Option<WorkerId> {
        self.connection(id).map(|connection| connection.worker)
    }

    /// Whether a reply of it that is there waits for its client.
    pub(crate) fn is_held(&self, io: &Context<'_>, worker: WorkerId) -> bool {
        let mut connections =
            self.connections.values().filter(|connection| connection.worker == worker);
        connections.any(|connection| {
            connection
                .flight
                .as_ref()
                .is_some_and(|it| it.held || io.relay_waits(connection.stream))
        })
    }

    /// What a worker has in its hands, and what it has answered.
    pub(crate) fn load(&self, worker: WorkerIndex) -> (usize, u64) {
        let server = self.live.get(worker).and_then(Option::as_ref);
        server.map_or((0, 0), |server| (server.in_flight as usize, server.served))
    }
}
