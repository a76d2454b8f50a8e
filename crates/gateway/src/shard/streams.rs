//! Events of streams are passed to the owners of the streams.

use std::io::ErrorKind;

use event::{Calls, Data, DeadlineName, OwnerKey, Reason, StreamId};
use exchange::Cause;

use super::Shard;
use crate::drain::Stage;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamOwner;
use frontend::session::SessionContext;
use observe::closings::Closing;

impl Shard {
    pub(super) fn data(
        &mut self,
        calls: &mut Calls<'_>,
        (stream, key): (StreamId, OwnerKey),
        mut data: Data<'_>,
    ) {
        match self.owner(key) {
            StreamOwner::Nobody => data.consume(data.bytes().len()),
            StreamOwner::Refused => self.refused_data(calls, stream, &mut data),
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                if let Some(session) = found {
                    let listener = &self.listeners[session.listener_id()].plan;
                    session.take_over(calls, &listener.connection);
                    let mut cx =
                        SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                    let closing = session.handle_data(calls, &mut data, &mut cx);
                    if !session.set_dirty(true) {
                        self.dirty.push(id);
                    }
                    if closing == Some(Closing::WrongProtocol) {
                        self.note_wrong_protocol(id);
                    }
                }
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.hear(calls, stream, owner, StreamEvent::Data(&mut data));
            }
        }
    }

    pub(super) fn eof(&mut self, calls: &mut Calls<'_>, (stream, key): (StreamId, OwnerKey)) {
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_eof(calls, stream),
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.hear(calls, stream, owner, StreamEvent::Eof);
            }
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                let Some(session) = found else { return };
                let mut cx =
                    SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                if session.handle_eof(calls, &mut cx) {
                    self.leave(calls, id, Cause::Left);
                } else {
                    self.touch(id);
                }
            }
        }
    }

    pub(super) fn closed(
        &mut self,
        calls: &mut Calls<'_>,
        (stream, key): (StreamId, OwnerKey),
        reason: Reason,
    ) {
        if reason == Reason::ConnectFailed(ErrorKind::QuotaExceeded) {
            self.lacks_descriptor(calls, 1);
        }
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_closed(stream),
            StreamOwner::Session(id) => {
                if self.drain.stage == Stage::Closing && calls.queued(stream) > 0 {
                    self.drain.result.unread += 1;
                }
                let cause = if reason == Reason::Overrun {
                    self.count_closing(id, Closing::Stalled);
                    Cause::Stalled
                } else {
                    Cause::Left
                };
                self.remove_session(id, cause);
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.hear(calls, stream, owner, StreamEvent::Closed(reason));
            }
        }
    }

    pub(super) fn deadline(
        &mut self,
        calls: &mut Calls<'_>,
        (stream, key): (StreamId, OwnerKey),
        name: DeadlineName,
    ) {
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_deadline(calls, stream),
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                let Some(session) = found else { return };
                let mut cx =
                    SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                match session.handle_deadline(calls, name, &mut cx) {
                    Some(closing) => self.close_session(calls, id, closing),
                    None => self.touch(id),
                }
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.hear(calls, stream, owner, StreamEvent::Deadline(name));
            }
        }
    }
}
