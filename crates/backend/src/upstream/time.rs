//! Timeouts of servers. They are suspended while the client is expected to act.

use event::{Context, DeadlineName};

use super::fault::Fault;
use super::{ConnectionId, STEP, Upstream};
use crate::backend::BackendContext;

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
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        name: DeadlineName,
    ) {
        let Some(connection) = self.connection(id) else { return };
        if connection.flight.is_none() {
            return self.close(cx.io, id);
        }
        if name == STEP && connection.waits_for_client(cx.io) {
            return self.restart_timeout(cx.io, id);
        }
        let fault = match connection.owed_by_client(cx.io) {
            _ if connection.is_connecting() => Fault::ConnectLate,
            Some(cause) => Fault::Overtime(cause),
            None => Fault::Late,
        };
        self.lose(cx, id, fault);
    }
}
