//! Passes events of streams to the owners of the streams.

use std::io::ErrorKind;

use event::{Context, Data, DeadlineName, OwnerKey, Reason, StreamId};
use exchange::Cause;

use super::Shard;
use crate::drain::Stage;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamOwner;
use observe::closings::Closing;

impl Shard {
    pub(super) fn data(
        &mut self,
        io: &mut Context<'_>,
        (stream, key): (StreamId, OwnerKey),
        mut data: Data<'_>,
    ) {
        match self.owner(key) {
            StreamOwner::Nobody => data.consume(data.bytes().len()),
            StreamOwner::Refused => self.refused_data(io, stream, &mut data),
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                if let Some(session) = found {
                    let listener = &self.listeners[session.listener_id()].config;
                    session.take_over(io, &listener.connection);
                    let mut cx = session_context!(self, io);
                    let closing = session.handle_data(&mut data, &mut cx);
                    if !session.set_dirty(true) {
                        self.dirty.push(id);
                    }
                    if closing == Some(Closing::WrongProtocol) {
                        self.note_wrong_protocol(id);
                    }
                }
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.handle_stream_event(io, stream, owner, StreamEvent::Data(&mut data));
            }
        }
    }

    pub(super) fn eof(&mut self, io: &mut Context<'_>, (stream, key): (StreamId, OwnerKey)) {
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_eof(io, stream),
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.handle_stream_event(io, stream, owner, StreamEvent::Eof);
            }
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                let Some(session) = found else { return };
                let mut cx = session_context!(self, io);
                if session.handle_eof(&mut cx) {
                    self.leave(io, id, Cause::Left);
                } else {
                    self.touch(id);
                }
            }
        }
    }

    pub(super) fn closed(
        &mut self,
        io: &mut Context<'_>,
        (stream, key): (StreamId, OwnerKey),
        reason: Reason,
    ) {
        if let Reason::ConnectFailed(error) = reason
            && error.kind() == ErrorKind::QuotaExceeded
        {
            self.lacks_descriptor(io, 1);
        }
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_closed(stream),
            StreamOwner::Session(id) => {
                if self.drain.stage == Stage::Closing && io.queued(stream) > 0 {
                    self.drain.result.unread += 1;
                }
                let cause = if reason == Reason::SendBufferFull {
                    self.count_closing(id, Closing::Stalled);
                    Cause::Stalled
                } else {
                    Cause::Left
                };
                self.remove_session(io, id, cause);
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.handle_stream_event(io, stream, owner, StreamEvent::Closed(reason));
            }
        }
    }

    pub(super) fn deadline(
        &mut self,
        io: &mut Context<'_>,
        (stream, key): (StreamId, OwnerKey),
        name: DeadlineName,
    ) {
        match self.owner(key) {
            StreamOwner::Nobody => {}
            StreamOwner::Refused => self.refused_deadline(io, stream),
            StreamOwner::Session(id) => {
                let found = self.sessions.get_mut(id);
                let Some(session) = found else { return };
                let mut cx = session_context!(self, io);
                match session.handle_deadline(name, &mut cx) {
                    Some(closing) => self.close_session(io, id, closing),
                    None => self.touch(id),
                }
            }
            owner @ (StreamOwner::Worker { .. } | StreamOwner::Check { .. }) => {
                self.handle_stream_event(io, stream, owner, StreamEvent::Deadline(name));
            }
        }
    }
}
