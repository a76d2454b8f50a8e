//! Servers that are programs started by the daemon. Each gets an address when it starts and loses it when it ends.

use event::Context;
use exchange::{WorkerId, WorkerIndex};

use super::connection::ActiveRequest;
use super::fault::Fault;
use super::{ConnectionId, Upstream};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Sets the address and the display name of a worker.
    pub(crate) fn set_address(&mut self, worker: WorkerId, address: event::Address, shown: &str) {
        let nowhere = || (event::Address::Unix(std::path::PathBuf::new()), String::new());
        *self.config.addresses.at_with(worker, nowhere) = (address, shown.to_owned());
    }

    /// Returns the address of a worker.
    pub(crate) fn server_address(&self, worker: WorkerId) -> Option<&event::Address> {
        self.config.addresses.get(worker).map(|(address, _)| address)
    }

    /// Closes a connection that was not accepted by the program. Nothing was sent on it, and the program gets no
    /// further requests.
    pub(crate) fn refuse(&mut self, cx: &mut BackendContext<'_, '_>, connection: ConnectionId) {
        self.lose(cx, connection, Fault::Taken);
    }

    /// Handles a full listen backlog. The request returns to the queue, and its slot remains in use for a short time:
    /// an immediate retry would become a busy loop.
    pub(super) fn backlog_full(
        &mut self,
        worker: WorkerId,
        flight: Option<ActiveRequest>,
        events: &mut Vec<BackendEvent>,
    ) {
        if !std::mem::replace(&mut self.full_backlog_logged, true) {
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
        self.full_backlogs.push(worker);
    }

    /// Whether slots remain in use because backlogs were full.
    pub(crate) const fn has_full_backlog(&self) -> bool {
        !self.full_backlogs.is_empty()
    }

    /// Removes and returns the worker of one of these slots.
    pub(crate) fn next_full_backlog(&mut self) -> Option<WorkerId> {
        self.full_backlogs.pop()
    }

    /// Releases such a slot: the backlog may have space again.
    pub(crate) fn retry_full_backlog(&mut self, worker: WorkerId, events: &mut Vec<BackendEvent>) {
        self.release(worker, false, events);
    }

    /// Stops sending requests to a worker. It ends once its requests in flight are answered.
    pub(crate) fn drain(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.retire(cx, worker);
        self.try_end(worker, false, cx.events);
    }

    /// Handles that a worker is gone: its requests return to the queue or end.
    pub(crate) fn mark_gone(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.retire(cx, worker);
        let before = self.full_backlogs.len();
        self.full_backlogs.retain(|full_backlogs| *full_backlogs != worker);
        for _ in self.full_backlogs.len()..before {
            self.release(worker, false, cx.events);
        }
        for id in self.connections.places().into_iter().map(ConnectionId) {
            match self.connection(id) {
                Some(connection) if connection.worker == worker && connection.flight.is_some() => {
                    self.lose(cx, id, Fault::Ended);
                }
                Some(connection) if connection.worker == worker => self.close(cx.io, id),
                _ => {}
            }
        }
        self.try_end(worker, false, cx.events);
    }

    /// Returns the worker of a connection.
    pub(crate) fn worker_of(&mut self, id: ConnectionId) -> Option<WorkerId> {
        self.connection(id).map(|connection| connection.worker)
    }

    /// Whether a received reply of the worker waits for its client.
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

    /// Returns the number of requests in flight of a worker, and how many it has answered.
    pub(crate) fn load(&self, worker: WorkerIndex) -> (usize, u64) {
        let server = self.live.get(worker).and_then(Option::as_ref);
        server.map_or((0, 0), |server| (server.in_flight as usize, server.served))
    }
}
