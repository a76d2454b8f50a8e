//! Responses that nobody gets: their status is one after which the request goes to another server.

use event::Calls;
use exchange::Cause;

use super::{LinkId, Servers};
use flow::form::Form;
use flow::upward::Upward;

impl Servers {
    /// A response of this status came, after which the request is given to another server. `whole`: all
    /// of it has come, and the connection can be used again.
    pub(super) fn retry_after(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        status: u16,
        whole: bool,
        up: &mut Vec<Upward>,
    ) {
        let Some(link) = self.link(id) else { return };
        let (stream, worker, leaves) = (link.stream, link.worker, link.leaves);
        let Some(flight) = link.flight.take() else { return };
        let unsent = calls.queued(stream) > 0;
        self.keep_or_close(calls, id, whole && !unsent && !leaves);
        self.budget.spend();
        let form = Form { tries: flight.form.tries.saturating_add(1), ..flight.form };
        up.push(Upward::Rejected { id: flight.id, status });
        let failed = Some((worker, Cause::Worker));
        up.push(Upward::Again { id: flight.id, payload: flight.payload, form, failed });
        self.release(worker, true, up);
    }
}
