//! The end of tunnels, which follow a 101 response.

use event::Context;
use exchange::{RequestId, Slice};

use super::{ConnectionId, Upstream};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Handles that the server has closed its direction.
    pub(super) fn server_half_closed(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        of: RequestId,
    ) {
        cx.events.push(BackendEvent::ReplyEnd { id: of });
        self.end_if_over(cx, id);
    }

    /// Ends a tunnel when both directions are closed. The client's last bytes are sent first, within the read timeout.
    pub(super) fn end_if_over(&mut self, cx: &mut BackendContext<'_, '_>, id: ConnectionId) {
        let Some(connection) = self.connection(id) else { return };
        if connection.is_fully_closed() && cx.io.queued(connection.stream) == 0 {
            return self.whole(cx, id, Slice::default(), false);
        }
        self.restart_timeout(cx.io, id);
    }

    /// Like [`Self::close`], but a tunnel is reset, also before its 101 has arrived, so that the server does not
    /// mistake the end for a complete transfer.
    pub(super) fn cut(&mut self, io: &mut Context<'_>, id: ConnectionId) {
        if let Some(connection) =
            self.connection(id).filter(|connection| connection.ends_by_reset())
        {
            io.reset(connection.stream);
        }
        self.close(io, id);
    }
}
