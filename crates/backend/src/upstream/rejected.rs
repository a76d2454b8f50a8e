//! Responses that are discarded because of their status, whose requests are retried on another server.

use exchange::Cause;

use super::{ConnectionId, Upstream};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::request_meta::RequestMeta;

impl Upstream {
    /// Retries a request after a response with this status. `whole`: the response is complete, and the connection can
    /// be reused.
    pub(super) fn retry_after(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        status: u16,
        whole: bool,
    ) {
        let Some(connection) = self.connection(id) else { return };
        let (stream, worker, address_changed) =
            (connection.stream, connection.worker, connection.address_changed);
        let Some(flight) = connection.flight.take() else { return };
        let unsent = cx.io.queued(stream) > 0;
        self.keep_or_close(cx.io, id, whole && !unsent && !address_changed);
        self.budget.spend();
        let meta = RequestMeta { tries: flight.meta.tries.saturating_add(1), ..flight.meta };
        cx.events.push(BackendEvent::RejectedStatus { id: flight.id, status });
        let failed = Some((worker, Cause::Worker));
        cx.events.push(BackendEvent::Retry {
            id: flight.id,
            payload: flight.payload,
            meta,
            failed,
        });
        self.release(worker, true, cx.events);
    }
}
