//! Clients of a shard: their admission, rejection, flushing and removal.

use std::io::ErrorKind;
use std::sync::Arc;

use event::{Context, KernelError, StreamId};
use exchange::{Cause, ListenerId, Outcome, Peer, Phase};

use super::Shard;
use crate::client_limits;
use flow::ids::SessionId;
use flow::stream_owner::StreamOwner;
use frontend::session::Session;
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
            listener.rejections.count_admission();
            return io.close(stream);
        }
        // This check is first, so that a client which is rejected anyway displaces no other client.
        let entry = match self.listener_limits.at(id).enter(self.engine.now, id, peer) {
            Ok(entry) => entry,
            Err(cause) => {
                return self.refuse_connection(io, stream, peer, id, client_limits::refusal(cause));
            }
        };
        if !self.ensure_descriptors(io, stream, peer, id) {
            return self.listener_limits.leave(entry);
        }
        while !self.fleet.open(id, config.connections_max) {
            if !self.displace(io, id) {
                self.listener_limits.leave(entry);
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
            let mut cx = session_context!(self, io);
            Session::open(id, stream, (peer, entry), &config, &mut cx)
        });
        let session = SessionId::new(shard, place);
        io.set_key(stream, StreamOwner::Session(session).key());
        // If the session was opened with an error, it is sent in this turn.
        if self.session(session).is_some_and(|session| session.is_owed()) {
            self.touch(session);
        }
    }

    /// Returns the listener of a socket.
    fn listener_of(&self, socket: event::ListenerId) -> Option<ListenerId> {
        let found = self.listeners.entries().find(|(_, listener)| listener.id == Some(socket));
        found.map(|(id, _)| id)
    }

    /// Handles a failed accept. The listener pauses for a short time.
    pub(super) fn accept_failed(
        &mut self,
        io: &mut Context<'_>,
        listener: event::ListenerId,
        error: KernelError,
    ) {
        let Some(id) = self.listener_of(listener) else {
            return;
        };
        let listener = &mut self.listeners[id];
        listener.accept_failed += 1;
        if error.kind() == ErrorKind::QuotaExceeded {
            return self.lacks_descriptor_to_accept(io);
        }
        if listener.closings.logs_failure(self.engine.now) {
            let listener = &listener.config.name;
            tracing::warn!(listener, "no connection can be accepted at the moment: {error}");
        }
    }

    /// Removes a client that is gone or is cut off. Its stream is closed and its requests are abandoned.
    pub(super) fn leave(&mut self, io: &mut Context<'_>, id: SessionId, cause: Cause) {
        if let Some(session) = self.session(id) {
            let stream = session.stream();
            io.set_key(stream, StreamOwner::Nobody.key());
            session.cut(io);
            self.remove_session(io, id, cause);
        }
    }

    /// Handles that a client which is not read at this moment has ended its input.
    pub(super) fn end_ahead(&mut self, io: &mut Context<'_>, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut cx = session_context!(self, io);
        if session.handle_end_ahead(&mut cx) {
            self.leave(io, id, Cause::Left);
        } else {
            self.touch(id);
        }
    }

    /// Closes a connection for a reason of the daemon. An idle connection has already been finished.
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

    /// Handles a client that speaks a different protocol than its listener. It is closed once its error is sent.
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

    pub(super) fn remove_session(&mut self, io: &mut Context<'_>, id: SessionId, cause: Cause) {
        let Some(mut session) = self.sessions.remove(id) else {
            return;
        };
        let mut cx = session_context!(self, io);
        session.end(cause, &mut cx);
        session.stop_waiting(&mut cx);
        let listener = &mut self.listeners[session.listener_id()];
        listener.open -= 1;
        self.fleet.close(session.listener_id());
        session.each_abandoned(&mut |request| self.engine.abandon(request, cause));
        self.engine.leave(id);
        self.listener_limits.leave(session.entry());
    }

    /// Sends a message that a program addressed to all clients to the clients of its pool.
    pub(super) fn announce(&mut self, io: &mut Context<'_>) {
        if self.engine.announced.is_empty() {
            return;
        }
        let shard = self.engine.shard_link.me();
        for (pool, frame) in std::mem::take(&mut self.engine.announced) {
            for id in self.sessions.places().into_iter().map(|place| SessionId::new(shard, place)) {
                let Some(session) = self.sessions.get_mut(id) else { continue };
                let mut cx = session_context!(self, io);
                if session.announce(pool, &frame, &mut cx) && !session.set_dirty(true) {
                    self.dirty.push(id);
                }
            }
        }
    }

    /// Resumes clients that were paused because the queue of their pool had no space. Returns true if there were any.
    #[inline]
    pub(super) fn wake_paused(&mut self) -> bool {
        // Nearly every turn has none.
        self.engine.has_paused() && self.wake_some()
    }

    fn wake_some(&mut self) -> bool {
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
                let mut cx = session_context!(self, io);
                session.flush(&mut cx);
            }
        }
        self.dirty = dirty;
    }
}
