//! Control messages for requests in flight.

use exchange::{RequestId, WorkerId};

use super::Upstream;
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::ids::ConnectionId;
use flow::request_control::RequestControl;

impl Upstream {
    /// Returns the connection of an abandoned request. The index of the request may belong to a newer request, which
    /// was dispatched before this call.
    fn connection_of(&mut self, worker: WorkerId, request: RequestId) -> Option<ConnectionId> {
        let mut ids = self.connections.places().into_iter().map(ConnectionId);
        ids.find(|id| {
            self.connection(*id).is_some_and(|connection| connection.serves(worker, request))
        })
    }

    /// Handles a control message for a request in flight.
    pub(crate) fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: RequestId,
        control: RequestControl,
    ) {
        let Some(&noted) = self.of_request.get(request.index()) else { return };
        let serves =
            self.connection(noted).is_some_and(|connection| connection.serves(worker, request));
        let id = match control {
            _ if serves => noted,
            RequestControl::Abandoned => match self.connection_of(worker, request) {
                Some(id) => id,
                None => return,
            },
            _ => return,
        };
        let high = self.config.limits.send_high;
        let Some(connection) = self.connections.get_mut(id) else { return };
        match control {
            RequestControl::Pause => connection.pause_reply(cx.io, true),
            RequestControl::Resume => {
                connection.pause_reply(cx.io, false);
                self.restart_timeout(cx.io, id);
            }
            RequestControl::Body(part, _) => {
                let queued = connection.pass(cx.io, part);
                self.restart_timeout(cx.io, id);
                if queued > high {
                    cx.events.push(BackendEvent::BodyWanted { id: request, wanted: false });
                }
            }
            RequestControl::BodyEnd => {
                connection.pass_end(cx.io);
                self.end_if_over(cx, id);
            }
            RequestControl::Splice(to) => connection.relay(cx.io, to),
            RequestControl::Abandoned => {
                // An abandoned reply cannot be cancelled in HTTP/1, so its connection is closed.
                self.cut(cx.io, id);
                self.release(worker, false, cx.events);
            }
        }
    }
}
