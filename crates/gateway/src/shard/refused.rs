//! Connections that are rejected because of a limit of their listener.
//!
//! A framed client is answered immediately. An HTTP client is answered after it has sent a request. HTTP clients report
//! a response before any request as unsolicited, and the request that they send on such a connection fails without a
//! status. Therefore the head of the request is read first, up to [`HEAD_MAX`] bytes and for the `request_read_timeout`
//! of the listener. A connection that sends no request in this time is reset.

use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data, DeadlineName, StreamId};
use exchange::{ListenerId, Outcome, Peer};

use super::Shard;
use super::refused_connections::Waiting;
use flow::client::Source;
use flow::stream_owner::StreamOwner;
use frontend::protocol::RefusalTime;

/// The maximum number of rejected connections that are answered at the same time. Others are closed without an answer,
/// so that a flood of them cannot use all descriptors.
const ANSWERED_MAX: usize = 256;
/// The maximum time for such a client to read its answer.
const LINGER: Duration = Duration::from_secs(1);
/// The maximum time for the head of a request if the listener has no limit.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes of a head that are read. A request with a longer head is answered before the end of its
/// head.
const HEAD_MAX: usize = 16 << 10;
/// The deadline for receiving a head.
const HEAD: DeadlineName = DeadlineName(0);

impl Shard {
    /// Rejects a connection. It is answered if fewer than [`ANSWERED_MAX`] are being answered.
    pub(super) fn refuse_connection(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        peer: Peer,
        id: ListenerId,
        outcome: Outcome,
    ) {
        let listener = &mut self.listeners[id];
        listener.rejections.count(outcome.end().cause);
        if self.refused.open >= ANSWERED_MAX {
            return io.close(stream);
        }
        let listener = Arc::clone(&listener.config);
        self.refused.open += 1;
        io.set_key(stream, StreamOwner::Refused.key());
        if let RefusalTime::AfterRequest(within) = listener.protocol_config.refusal_time() {
            io.deadline_in(stream, HEAD, within.unwrap_or(HEAD_TIMEOUT));
            self.refused.waiting.insert(stream.index(), Waiting { listener, peer, outcome });
            return;
        }
        self.scratch.bytes.clear();
        listener.protocol_config.write_refusal(&outcome, &mut self.scratch.bytes);
        let connection = &listener.connection;
        let entry = self.engine.access_log.begin(connection.logged.as_ref());
        let source = Source::of_listener(peer, id);
        self.engine.refused_at_receipt(connection.pool, source, &outcome, entry);
        if self.scratch.bytes.is_empty() {
            // On a connection of raw bytes, only a reset can be distinguished from data.
            return io.reset(stream);
        }
        io.send_bytes(stream, &self.scratch.bytes);
        io.finish(stream, Some(LINGER));
    }

    /// Handles bytes of a rejected connection. They are not consumed until the head is complete.
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
        let mut cx = session_context!(self, io);
        let connection = &listener.connection;
        if !listener.protocol_config.refuse_request(connection, (bytes, rest), outcome, &mut cx) {
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

    /// Handles the end of the input. Without a request there is nothing to answer.
    pub(super) fn refused_eof(&mut self, io: &mut Context<'_>, stream: StreamId) {
        if self.refused.waiting.remove(&stream.index()).is_some() {
            io.finish(stream, Some(LINGER));
        }
    }

    /// Handles that no request arrived in time.
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
