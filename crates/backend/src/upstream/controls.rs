//! Control messages for requests in flight.

use event::Context;
use exchange::{RequestId, WorkerId};

use super::Upstream;
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
        io: &mut Context<'_>,
        worker: WorkerId,
        request: RequestId,
        control: RequestControl,
        events: &mut Vec<BackendEvent>,
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
            RequestControl::Pause => connection.pause_reply(io, true),
            RequestControl::Resume => {
                connection.pause_reply(io, false);
                self.restart_timeout(io, id);
            }
            RequestControl::Body(part, _) => {
                let queued = connection.pass(io, part);
                self.restart_timeout(io, id);
                if queued > high {
                    events.push(BackendEvent::BodyWanted { id: request, wanted: false });
                }
            }
            RequestControl::BodyEnd => {
                connection.pass_end(io);
                self.end_if_over(io, id, events);
            }
            RequestControl::Splice(to) => connection.relay(io, to),
            RequestControl::Abandoned => {
                // An abandoned reply cannot be cancelled in HTTP/1, so its connection is closed.
                self.cut(io, id);
                self.release(worker, false, events);
            }
        }
    }
}
