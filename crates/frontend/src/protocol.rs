//! What a client protocol must provide: [`Protocol`] for each connection, [`ProtocolConfig`] for each listener.
//!
//! A session calls its protocol once for each event. The session itself handles what all protocols share: idle and
//! write timeouts, half-closed connections, drains. A protocol decodes requests from received bytes, submits them to
//! [`SessionContext::requests`] under sequence numbers that it assigns, receives replies under these numbers, and
//! writes its output when it is flushed. It must never depend on a kind of worker, or on another protocol.
//!
//! A new protocol is a type that implements both traits, and one arm where listeners are built. No other code of the
//! data plane names it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data};
use exchange::{Cause, Outcome, PoolId, RequestId, Slice};

use crate::connection::ConnectionConfig;
use crate::context::SessionContext;
use crate::transport::Transport;
use flow::ids::SessionId;
use flow::permit::Grant;
use flow::reply_event::ReplyEvent;
use flow::reply_head::BoxedReplyHead;
use flow::requests::Requests;
use observe::closings::Closing;

/// What the received bytes were, which decides how they affect the timeouts of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// They were discarded: the idle timeout goes on.
    Discarded,
    /// No request has begun yet, for example after an empty line: `first_request_timeout` goes on.
    Nothing,
    /// A request has begun, now or before.
    Request,
    /// They were rejected: the connection is closed for this reason once the rejection is sent.
    Rejected(Closing),
}

impl Received {
    /// [`Self::Request`] if one has begun, else [`Self::Nothing`].
    #[must_use]
    pub const fn of(has_begun: bool) -> Self {
        if has_begun { Self::Request } else { Self::Nothing }
    }
}

/// The time at which a rejected connection is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalTime {
    /// Immediately, with [`ProtocolConfig::write_refusal`].
    Now,
    /// After its first request, with [`ProtocolConfig::refuse_request`]. The request must arrive within this time;
    /// `None`: within the default of the shard.
    AfterRequest(Option<Duration>),
}

/// The configuration of the protocol of a listener.
pub trait ProtocolConfig: Any + fmt::Debug + Send + Sync {
    /// Creates the protocol of an accepted connection. It may submit a request or send bytes immediately.
    fn open(
        self: Arc<Self>,
        id: SessionId,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> Box<dyn Protocol>;

    /// Writes the rejection of a datagram, or of a connection that does not become a session. If it writes nothing,
    /// the connection is reset.
    fn write_refusal(&self, outcome: &Outcome, out: &mut Vec<u8>);

    /// The time at which a rejected connection is answered.
    fn refusal_time(&self) -> RefusalTime {
        RefusalTime::Now
    }

    /// Writes the rejection of the first request of a connection that does not become a session, to the scratch memory
    /// of `cx`. `false`: the request is incomplete and, unless `is_last`, more of it may arrive.
    fn refuse_request(
        &self,
        connection: &ConnectionConfig,
        (bytes, is_last): (&[u8], bool),
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let _ = (connection, bytes, is_last, outcome, cx);
        true
    }

    /// Whether each datagram is a request of its own, so that there are no connections.
    fn is_datagrams(&self) -> bool {
        false
    }
}

/// The protocol of one connection. Every protocol implements the methods without a default.
pub trait Protocol: fmt::Debug + Send {
    /// Handles bytes of the client. Bytes that are not consumed are passed again, followed by later ones.
    fn handle_data(
        &mut self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> Received;

    /// Handles an event about request `sequence`.
    fn deliver(
        &mut self,
        transport: &mut Transport,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    );

    /// Handles a complete reply to request `sequence`: its head, and its outcome.
    fn deliver_whole(
        &mut self,
        transport: &mut Transport,
        (sequence, head, outcome): (u64, BoxedReplyHead, Outcome),
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.deliver(transport, sequence, ReplyEvent::Head(head), cx);
        self.deliver(transport, sequence, ReplyEvent::End(outcome), cx);
    }

    /// Writes ready replies up to the high-water mark, resumes reading when there is room again, and
    /// [closes](Transport::finish) the connection when it is complete.
    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>);

    /// Writes all ready replies, also above the high-water mark: the connection ends. `true`: it must be reset,
    /// because an incomplete reply could be mistaken for a complete one.
    fn flush_all(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool;

    /// Whether a request has begun and is not complete, or has not been answered.
    fn has_begun(&self) -> bool;

    /// Whether a reply is outstanding or not written yet.
    fn is_owed(&self) -> bool;

    /// Calls `each` with every request in flight, to abandon when the session is closed.
    fn each_abandoned(&self, each: &mut dyn FnMut(RequestId));

    /// Memory beside the stream, in bytes: waiting replies and buffered bodies.
    fn held(&self) -> usize {
        0
    }

    /// The [READ](crate::transport::READ) deadline has passed.
    fn handle_slow(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        let _ = (transport, cx);
    }

    /// The client has shut down its sending direction. `true`: the session must be closed.
    fn handle_eof(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        let _ = cx;
        !transport.listener().keeps_half_closed
    }

    /// A client that is not being read has shut down its sending direction. `true`: the session must be closed.
    fn handle_end_ahead(
        &mut self,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let _ = (transport, cx);
        false
    }

    /// The client has closed both directions; earlier bytes may be unread. `true`: the session must be closed, because
    /// its requests are useless without their replies.
    fn handle_hangup(&mut self, transport: &Transport) -> bool {
        let _ = transport;
        false
    }

    /// The listener has new settings. A protocol applies them now, later in [`Self::take_over`], or never.
    fn handle_listener(
        &mut self,
        transport: &mut Transport,
        connection: &Arc<ConnectionConfig>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let _ = (transport, connection, cx);
    }

    /// Called before received bytes are handled, while the listener has settings that the connection does not use yet.
    fn take_over(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        connection: &Arc<ConnectionConfig>,
    ) {
        let _ = (transport, io, connection);
    }

    /// A graceful shutdown begins.
    fn begin_drain(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        let _ = (transport, cx);
    }

    /// Whether a further request may still be submitted during a drain.
    fn may_ask(&self) -> bool {
        false
    }

    /// Whether a request is in progress. During a drain, such a connection keeps its full idle timeout.
    fn is_at_work(&self) -> bool {
        self.has_begun()
    }

    /// Whether the connection may be closed to make room for another one. The client has read all replies.
    fn is_idle(&self, transport: &Transport, requests: &dyn Requests) -> bool {
        let _ = (transport, requests);
        !self.has_begun()
    }

    /// Whether the end of the connection, with `queued` bytes of unsent output, could be mistaken for the end of an
    /// incomplete reply. The connection is reset then.
    fn would_look_whole(&self, queued: usize) -> bool {
        let _ = queued;
        false
    }

    /// The idle timeout of a tunnel; `Some(None)`: a tunnel without a limit; `None`: not a tunnel.
    fn tunnel_idle(&self, transport: &Transport) -> Option<Option<Duration>> {
        let _ = transport;
        None
    }

    /// Whether a reply that is not in the output buffer waits for the client.
    fn is_waited_for(&self, io: &Context<'_>) -> bool {
        let _ = io;
        false
    }

    /// A worker of this pool sent a message to all clients. Returns whether it applies to this client.
    fn announce(
        &mut self,
        transport: &Transport,
        pool: PoolId,
        frame: &Slice,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let _ = (transport, pool, frame, cx);
        false
    }

    /// Whether a request of the client waits unread because the queue of its pool was full.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Allows a paused client to send requests, because the queue of its pool has room.
    fn grant(&mut self, grant: Grant) {
        let _ = grant;
    }

    /// Removes the client from the clients that wait for room.
    fn stop_waiting(&mut self, cx: &mut SessionContext<'_, '_>) {
        let _ = cx;
    }

    /// The client is gone or was disconnected.
    fn end(&mut self, transport: &Transport, cause: Cause, cx: &mut SessionContext<'_, '_>) {
        let _ = (transport, cause, cx);
    }

    /// Checks the invariants that hold between two turns. For tests.
    ///
    /// # Panics
    /// When it does not hold.
    fn check(&self) {}
}
