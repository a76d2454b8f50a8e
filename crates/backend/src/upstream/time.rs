//! Timeouts of servers. They are suspended while the client is expected to act.

use event::{Calls, DeadlineName};

use super::fault::Fault;
use super::{LINK, LinkId, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Restarts the timeout of the server.
    pub(super) fn owes_from_now(&mut self, calls: &mut Calls<'_>, id: LinkId) {
        let (deadline, between) = (self.plan.deadline, self.plan.between);
        if let Some(link) = self.link(id) {
            let time = if link.has_answered() { between } else { deadline };
            calls.deadline_in(link.stream, LINK, time);
        }
    }

    pub(super) fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        name: DeadlineName,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        if link.flight.is_none() {
            return self.close(calls, id);
        }
        if name == LINK && link.waits_for_client(calls) {
            return self.owes_from_now(calls, id);
        }
        let fault = match link.owed_by_client(calls) {
            _ if link.is_connecting() => Fault::ConnectLate,
            Some(cause) => Fault::Overtime(cause),
            None => Fault::Late,
        };
        self.lose(calls, id, fault, up);
    }
}
