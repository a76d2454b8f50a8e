//! Timeouts of servers. They are suspended while the client is expected to act.

use event::{Context, DeadlineName};

use super::fault::Fault;
use super::{ConnectionId, STEP, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Restarts the timeout for the next action of the server.
    pub(super) fn restart_timeout(&mut self, io: &mut Context<'_>, id: ConnectionId) {
        let (deadline, between) = (self.config.deadline, self.config.between);
        if let Some(connection) = self.connection(id) {
            let time = if connection.has_answered() { between } else { deadline };
            io.deadline_in(connection.stream, STEP, time);
        }
    }

    pub(super) fn handle_deadline(
        &mut self,
        io: &mut Context<'_>,
        id: ConnectionId,
        name: DeadlineName,
        events: &mut Vec<BackendEvent>,
    ) {
        let Some(connection) = self.connection(id) else { return };
        if connection.flight.is_none() {
            return self.close(io, id);
        }
        if name == STEP && connection.waits_for_client(io) {
            return self.restart_timeout(io, id);
        }
        let fault = match connection.owed_by_client(io) {
            _ if connection.is_connecting() => Fault::ConnectLate,
            Some(cause) => Fault::Overtime(cause),
            None => Fault::Late,
        };
        self.lose(io, id, fault, events);
    }
}
