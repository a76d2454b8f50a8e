//! Connections that a limit of their listener rejects.
//!
//! A framed client is answered at once. An HTTP client is answered once it has sent a request: a
//! response before any request is reported as unsolicited by HTTP clients, and the request that they
//! send on such a connection fails without a status. So the head of the request is read first, up to
//! [`HEAD_MAX`] bytes and for the `request_read_timeout` of the listener; a connection that sends no request in
//! this time is reset.

use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data, DeadlineName, StreamId};
use exchange::{ListenerId, Outcome, Peer};

use super::Shard;
use super::refused_connections::Waiting;
use flow::client::Source;
use flow::stream_owner::StreamOwner;
use frontend::protocol::RefusalTime;
use frontend::session::SessionContext;

/// Rejected connections that are answered at the same time; more are closed without an answer, so
/// that a flood of them cannot take all descriptors.
const ANSWERED_MAX: usize = 256;
/// How long such a client may take to read its answer.
const LINGER: Duration = Duration::from_secs(1);
/// How long the head of a request may take to arrive where the listener has no limit.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A request whose head is longer is answered before its end.
const HEAD_MAX: usize = 16 << 10;
/// The deadline of a head.
const HEAD: DeadlineName = DeadlineName(0);

impl Shard {
    /// Rejects a connection, with an answer where there is room for one.
    pub(super) fn refuse_connection(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        peer: Peer,
        id: ListenerId,
        outcome: Outcome,
    ) {
        let listener = &mut self.listeners[id];
        listener.turned.count(outcome.end().cause);
        if self.refused.open >= ANSWERED_MAX {
            return io.close(stream);
        }
        let listener = Arc::clone(&listener.config);
        self.refused.open += 1;
        io.set_key(stream, StreamOwner::Refused.key());
        if let RefusalTime::AfterRequest(within) = listener.front.refusal_time() {
            io.deadline_in(stream, HEAD, within.unwrap_or(HEAD_TIMEOUT));
            self.refused.waiting.insert(stream.index(), Waiting { listener, peer, outcome });
            return;
        }
        self.scratch.bytes.clear();
        listener.front.write_refusal(&outcome, &mut self.scratch.bytes);
        let connection = &listener.connection;
        let entry = self.engine.access_log.begin(connection.logged.as_ref());
        let source = Source::of_listener(peer, id);
        self.engine.refused_at_receipt(connection.pool, source, &outcome, entry);
        if self.scratch.bytes.is_empty() {
            // On a connection of raw bytes nothing else can be told from data.
            return io.reset(stream);
        }
        io.send_bytes(stream, &self.scratch.bytes);
        io.finish(stream, Some(LINGER));
    }

    /// Bytes of a rejected connection: they are left where they are until the head is whole.
    pub(super) fn refused_data(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        data: &mut Data<'_>,
    ) {
        let bytes = data.bytes();
        let Some(waiting) = self.refused.waiting.get(&stream.index()) else {
            return data.consume(bytes.len());
        };
        let Waiting { listener, peer, outcome } = waiting;
        self.scratch.bytes.clear();
        let rest = bytes.len() >= HEAD_MAX;
        let mut cx = SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
        let connection = &listener.connection;
        if !listener.front.refuse_request(connection, (bytes, rest), outcome, &mut cx) {
            return;
        }
        let entry = cx.entry.take();
        let source = Source::of_listener(*peer, connection.id);
        self.engine.refused_at_receipt(connection.pool, source, outcome, entry);
        self.refused.waiting.remove(&stream.index());
        data.consume(bytes.len());
        io.deadline(stream, HEAD, None);
        io.send_bytes(stream, &self.scratch.bytes);
        io.finish(stream, Some(LINGER));
    }

    /// It sends no more. Without a request there is nothing to answer.
    pub(super) fn refused_eof(&mut self, io: &mut Context<'_>, stream: StreamId) {
        if self.refused.waiting.remove(&stream.index()).is_some() {
            io.finish(stream, Some(LINGER));
        }
    }

    /// No request came in time.
    pub(super) fn refused_deadline(&mut self, io: &mut Context<'_>, stream: StreamId) {
        if self.refused.waiting.remove(&stream.index()).is_some() {
            io.reset(stream);
        }
    }

    pub(super) fn refused_closed(&mut self, stream: StreamId) {
        self.refused.waiting.remove(&stream.index());
        self.refused.open -= 1;
    }
}
