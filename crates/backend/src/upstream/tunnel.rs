//! Links behind a 101, on which both sides speak freely: how they end.

use event::Calls;
use exchange::{RequestId, Slice};

use super::{LinkId, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// The server has ended its direction.
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

    /// A tunnel ends with both of its directions; what its client said last has to leave first, within
    /// the time that a server has for more of a reply.
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

    /// As [`Self::close`]. A tunnel ends by a reset, also one whose 101 is still on its way: its server
    /// must not take what came for all that was to come.
    pub(super) fn cut(&mut self, calls: &mut Calls<'_>, id: LinkId) {
        if let Some(link) = self.link(id).filter(|link| link.ends_by_reset()) {
            calls.reset(link.stream);
        }
        self.close(calls, id);
    }
}
