//! Clients of a shard: they are let in, refused, flushed, and let go.

use std::io::ErrorKind;
use std::sync::Arc;

use event::{Context, StreamId};
use exchange::{Cause, ListenerId, Outcome, Peer, Phase};

use super::Shard;
use crate::client_limits;
use flow::ids::SessionId;
use flow::stream_owner::StreamOwner;
use frontend::session::{Session, SessionContext};
use observe::closings::Closing;

impl Shard {
    pub(super) fn accepted(
        &mut self,
        io: &mut Context<'_>,
        listener: event::ListenerId,
        stream: StreamId,
        peer: event::Peer,
    ) {
        let Some(id) = self.listener_of(listener) else {
            return io.close(stream);
        };
        let listener = &mut self.listeners[id];
        let config = Arc::clone(&listener.config);
        let peer = match peer {
            event::Peer::Internet(address) => Peer::Internet(address),
            event::Peer::Local => Peer::Local,
        };
        if self.admission.as_mut().is_some_and(|admits| !admits(&config.name, &peer)) {
            listener.turned.count_admission();
            return io.close(stream);
        }
        // First, so that a client that is refused anyway displaces nobody.
        let entry = match self.doors.at(id).enter(self.engine.now, id, peer) {
            Ok(entry) => entry,
            Err(cause) => {
                return self.refuse_connection(io, stream, peer, id, client_limits::refusal(cause));
            }
        };
        if !self.affords(io, stream, peer, id) {
            return self.doors.leave(entry);
        }
        while !self.fleet.open(id, config.connections_max) {
            if !self.displace(io, id) {
                self.doors.leave(entry);
                let most = config.connections_max;
                let text =
                    format!("listener {} has {most} connections, none of them idle", config.name);
                let outcome = Outcome::ended(Cause::Connections, Phase::Receive, &text);
                return self.refuse_connection(io, stream, peer, id, outcome);
            }
        }
        let listener = &mut self.listeners[id];
        listener.open += 1;
        listener.accepted += 1;
        let shard = self.engine.shard_link.me();
        let place = self.sessions.insert_with(|place| {
            let id = SessionId::new(shard, place);
            let mut cx = SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
            Session::open(io, id, stream, (peer, entry), &config, &mut cx)
        });
        let session = SessionId::new(shard, place);
        io.set_key(stream, StreamOwner::Session(session).key());
        // One that was refused what it came for is told so in this turn.
        if self.session(session).is_some_and(|session| session.is_owed()) {
            self.touch(session);
        }
    }

    /// Whose socket it is.
    fn listener_of(&self, socket: event::ListenerId) -> Option<ListenerId> {
        let found = self.listeners.entries().find(|(_, listener)| listener.id == Some(socket));
        found.map(|(id, _)| id)
    }

    /// A listener could not accept, and is set aside for a moment.
    pub(super) fn accept_failed(
        &mut self,
        io: &mut Context<'_>,
        listener: event::ListenerId,
        error: ErrorKind,
    ) {
        let Some(id) = self.listener_of(listener) else {
            return;
        };
        let listener = &mut self.listeners[id];
        listener.accept_failed += 1;
        if error == ErrorKind::QuotaExceeded {
            return self.lacks_descriptor_to_accept(io);
        }
        if listener.closings.logs_failure(self.engine.now) {
            let listener = &listener.config.name;
            tracing::warn!(listener, "no connection can be accepted at the moment: {error}");
        }
    }

    /// The client is gone, or is cut: its stream closes and what it is owed is abandoned.
    pub(super) fn leave(&mut self, io: &mut Context<'_>, id: SessionId, cause: Cause) {
        if let Some(session) = self.session(id) {
            let stream = session.stream();
            io.set_key(stream, StreamOwner::Nobody.key());
            session.cut(io);
            self.remove_session(id, cause);
        }
    }

    /// A client that is not read at this moment sends no more.
    pub(super) fn end_ahead(&mut self, io: &mut Context<'_>, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut cx = SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
        if session.handle_end_ahead(io, &mut cx) {
            self.leave(io, id, Cause::Left);
        } else {
            self.touch(id);
        }
    }

    /// Closes a connection for a reason of ours. One that is idle has been finished already.
    pub(super) fn close_session(&mut self, io: &mut Context<'_>, id: SessionId, closing: Closing) {
        self.count_closing(id, closing);
        if closing != Closing::Idle {
            self.leave(io, id, closing.cause());
        }
    }

    pub(super) fn count_closing(&mut self, id: SessionId, closing: Closing) {
        if let Some(listener) = self.session(id).map(|session| session.listener_id()) {
            self.listeners[listener].closings.count(closing);
        }
    }

    /// A client speaks something else than its listener. It is closed once its refusal is sent.
    pub(super) fn note_wrong_protocol(&mut self, id: SessionId) {
        let Some(listener) = self.session(id).map(|session| session.listener_id()) else { return };
        let listener = &mut self.listeners[listener];
        if let Some(closed) = listener.closings.count_wrong_protocol(self.engine.now) {
            let listener = &listener.config.name;
            tracing::warn!(
                listener,
                closed,
                "clients are closed that do not speak the protocol of the listener: HTTP (a web page may send it), or no JSON"
            );
        }
    }

    pub(super) fn remove_session(&mut self, id: SessionId, cause: Cause) {
        let Some(mut session) = self.sessions.remove(id) else {
            return;
        };
        let mut cx = SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
        session.end(cause, &mut cx);
        session.stop_waiting(&mut cx);
        let listener = &mut self.listeners[session.listener_id()];
        listener.open -= 1;
        self.fleet.close(session.listener_id());
        session.each_abandoned(&mut |request| self.engine.abandon(request, cause));
        self.engine.leave(id);
        self.doors.leave(session.entry());
    }

    /// Tells all clients of a pool what one of its programs says to all of them.
    pub(super) fn announce(&mut self) {
        if self.engine.announced.is_empty() {
            return;
        }
        let shard = self.engine.shard_link.me();
        for (pool, frame) in std::mem::take(&mut self.engine.announced) {
            for id in self.sessions.places().into_iter().map(|place| SessionId::new(shard, place)) {
                let Some(session) = self.sessions.get_mut(id) else { continue };
                let mut cx =
                    SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                if session.announce(pool, &frame, &mut cx) && !session.set_dirty(true) {
                    self.dirty.push(id);
                }
            }
        }
    }

    /// Lets clients that were paused for want of room in their pool's queue send again. True when
    /// there were any.
    pub(super) fn wake_paused(&mut self) -> bool {
        // In nearly every turn.
        if !self.engine.has_paused() {
            return false;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.engine.wake_paused(&mut woken);
        let any = !woken.is_empty();
        for (id, grant) in woken.drain(..) {
            if let Some(session) = self.session(id) {
                session.grant(grant);
                self.touch(id);
            }
        }
        self.woken = woken;
        any
    }

    pub(super) fn flush(&mut self, io: &mut Context<'_>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            let found = self.sessions.get_mut(id);
            if let Some(session) = found {
                session.set_dirty(false);
                let mut cx =
                    SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                session.flush(io, &mut cx);
            }
        }
        self.dirty = dirty;
    }
}
