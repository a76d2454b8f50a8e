//! Responses that are discarded because of their status, whose requests are retried on another server.

use event::Calls;
use exchange::Cause;

use super::{LinkId, Upstream};
use flow::backend_event::BackendEvent;
use flow::request_meta::RequestMeta;

impl Upstream {
    /// Retries a request after a response with this status. `whole`: the response is complete, and the connection can
    /// be reused.
    pub(super) fn retry_after(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        status: u16,
        whole: bool,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        let (stream, worker, leaves) = (link.stream, link.worker, link.leaves);
        let Some(flight) = link.flight.take() else { return };
        let unsent = calls.queued(stream) > 0;
        self.keep_or_close(calls, id, whole && !unsent && !leaves);
        self.budget.spend();
        let meta = RequestMeta { tries: flight.meta.tries.saturating_add(1), ..flight.meta };
        up.push(BackendEvent::RejectedStatus { id: flight.id, status });
        let failed = Some((worker, Cause::Worker));
        up.push(BackendEvent::Retry { id: flight.id, payload: flight.payload, meta, failed });
        self.release(worker, true, up);
    }
}
