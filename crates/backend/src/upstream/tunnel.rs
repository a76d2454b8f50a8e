//! The end of tunnels, which follow a 101 response.

use event::Calls;
use exchange::{RequestId, Slice};

use super::{LinkId, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// The server has closed its direction.
    pub(super) fn said_all(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        of: RequestId,
        up: &mut Vec<BackendEvent>,
    ) {
        up.push(BackendEvent::ReplyEnd { id: of });
        self.end_if_over(calls, id, up);
    }

    /// Ends a tunnel when both directions are closed. The client's last bytes are sent first, within the read timeout.
    pub(super) fn end_if_over(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        if link.both_have_ended() && calls.queued(link.stream) == 0 {
            return self.whole(calls, id, Slice::default(), false, up);
        }
        self.owes_from_now(calls, id);
    }

    /// Like [`Self::close`], but a tunnel is reset, also before its 101 has arrived, so that the server does not
    /// mistake the end for a complete transfer.
    pub(super) fn cut(&mut self, calls: &mut Calls<'_>, id: LinkId) {
        if let Some(link) = self.link(id).filter(|link| link.ends_by_reset()) {
            calls.reset(link.stream);
        }
        self.close(calls, id);
    }
}
