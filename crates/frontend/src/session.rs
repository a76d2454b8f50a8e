//! One client session: its stream, and the protocol that decodes requests and encodes replies.
//!
//! `transport.rs` has what all protocols share. Each protocol has its own file. It submits
//! requests to the engine under numbers that it assigns, receives parts and outcomes under these numbers, and writes
//! its output when it is flushed.

use std::sync::Arc;
use std::time::Duration;

use event::{Context, Data, DeadlineName, StreamId};
use exchange::{Cause, ListenerId, Outcome, Peer, PoolId, RequestId, Slice};

use crate::connection::ConnectionConfig;
use crate::listener::ListenerConfig;
use crate::protocol::{Protocol, Received};
use crate::transport::{CLOSING_LINGER, LOOK, READ, TimeoutCheck, Transport};
use flow::address_limits::Entry;
use flow::ids::SessionId;
use flow::permit::Grant;
use flow::reply_event::ReplyEvent;
use flow::reply_head::BoxedReplyHead;
use flow::requests::Requests;
use observe::closings::Closing;

mod connect;
mod frames;
mod http;
mod reply_queue;

pub use crate::context::{Scratch, SessionContext};
pub use http::{session_moves, session_moves_made};

/// During a drain, a connection is not examined more often than this.
const DRAIN_LOOK_MIN: Duration = Duration::from_millis(100);

/// One client session, from accept to close.
#[derive(Debug)]
pub struct Session {
    transport: Transport,
    protocol: Box<dyn Protocol>,
}

impl Session {
    /// Starts the session of an accepted connection. `entry`: the address under which it was admitted, if the listener
    /// limits addresses.
    pub fn open(
        id: SessionId,
        stream: StreamId,
        (peer, entry): (Peer, Option<Entry>),
        listener: &ListenerConfig,
        cx: &mut SessionContext<'_, '_>,
    ) -> Self {
        let connection = Arc::clone(&listener.connection);
        let mut transport = Transport::open(cx.io, stream, peer, entry, connection);
        let protocol = Arc::clone(&listener.protocol_config).open(id, &mut transport, cx);
        Self { transport, protocol }
    }

    /// The listener that accepted the client.
    pub fn listener_id(&self) -> ListenerId {
        self.transport.listener().id
    }

    /// Sets whether the session is in the shard's list of sessions to flush, and returns the old value.
    pub const fn set_dirty(&mut self, dirty: bool) -> bool {
        std::mem::replace(&mut self.transport.dirty, dirty)
    }

    /// Applies new settings of the listener. For HTTP they apply from the next request. A session of frames uses the
    /// new pool and keeps its limits.
    pub fn handle_listener(
        &mut self,
        connection: &Arc<ConnectionConfig>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.protocol.handle_listener(&mut self.transport, connection, cx);
    }

    /// Applies new settings of the listener, unless a request is in progress.
    pub fn take_over(&mut self, io: &mut Context<'_>, connection: &Arc<ConnectionConfig>) {
        if !Arc::ptr_eq(self.transport.listener(), connection) {
            self.protocol.take_over(&mut self.transport, io, connection);
        }
    }

    /// Handles received bytes. Returns why the connection is closed once its rejection is sent, if it is.
    pub fn handle_data(
        &mut self,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> Option<Closing> {
        if self.transport.is_closing() {
            data.consume(data.bytes().len());
            return None;
        }
        match self.protocol.handle_data(&mut self.transport, data, cx) {
            Received::Discarded => {}
            Received::Nothing => self.transport.record_input(cx.io, false),
            Received::Request => self.transport.record_input(cx.io, true),
            Received::Rejected(closing) => {
                self.transport.record_input(cx.io, true);
                return Some(closing);
            }
        }
        None
    }

    /// A program of this pool sent a message to all clients. Returns whether it applies to this client.
    pub fn announce(
        &mut self,
        pool: PoolId,
        frame: &Slice,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        self.protocol.announce(&self.transport, pool, frame, cx)
    }

    /// Handles an event about request `sequence`.
    pub fn deliver(
        &mut self,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.protocol.deliver(&mut self.transport, sequence, reply_event, cx);
    }

    /// Handles a complete reply to request `sequence`: its head, and its outcome.
    pub fn deliver_whole(
        &mut self,
        sequence: u64,
        head: BoxedReplyHead,
        outcome: Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let reply = (sequence, head, outcome);
        self.protocol.deliver_whole(&mut self.transport, reply, cx);
    }

    /// Writes ready replies up to the high-water mark, resumes reading when there is room again, and closes the session
    /// when it is complete.
    pub fn flush(&mut self, cx: &mut SessionContext<'_, '_>) {
        self.protocol.flush(&mut self.transport, cx);
    }

    /// Closes the stream immediately. It is reset if an incomplete reply could be mistaken for a complete one.
    pub fn cut(&self, io: &mut Context<'_>) {
        if self.protocol.would_look_whole(self.transport.queued(io)) {
            io.reset(self.stream());
        } else {
            io.close(self.stream());
        }
    }

    /// Writes all ready replies, also above the high-water mark, and closes the session after they are sent.
    pub fn flush_and_finish(&mut self, cx: &mut SessionContext<'_, '_>) {
        if self.protocol.flush_all(&mut self.transport, cx) {
            return self.transport.reset(cx.io);
        }
        // A client that has received everything needs only the end. Others get time to read.
        let told = self.transport.queued(cx.io) == 0;
        self.transport.finish(cx.io, told.then_some(CLOSING_LINGER));
    }

    /// Handles a deadline. Returns the reason if the connection must be closed: immediately, or cleanly if it was
    /// [idle](Closing::Idle).
    pub fn handle_deadline(
        &mut self,
        name: DeadlineName,
        cx: &mut SessionContext<'_, '_>,
    ) -> Option<Closing> {
        match name {
            LOOK => return self.look(cx.io, cx.requests),
            READ => self.protocol.handle_slow(&mut self.transport, cx),
            DeadlineName(_) => {}
        }
        None
    }

    fn look(&mut self, io: &mut Context<'_>, requests: &dyn Requests) -> Option<Closing> {
        let tunnel = self.protocol.tunnel_idle(&self.transport);
        let idle = tunnel.unwrap_or(self.transport.listener().idle);
        let draining = requests.drain_keepalive_timeout().filter(|_| self.may_ask());
        let idle = match draining {
            Some(keepalive) if !self.protocol.is_at_work() => {
                Some(idle.map_or(keepalive, |idle| idle.min(keepalive)))
            }
            _ => idle,
        };
        match self.transport.look(io, self.protocol.is_waited_for(io), idle) {
            TimeoutCheck::Fine => {}
            TimeoutCheck::Silent => return Some(Closing::Silent),
            TimeoutCheck::Stalled => return Some(Closing::Stalled),
            TimeoutCheck::Slow => return Some(Closing::SlowReader),
            TimeoutCheck::Idle if tunnel.is_some() => return Some(Closing::TunnelIdle),
            TimeoutCheck::Idle if self.is_unread(io) || self.protocol.is_waiting() => {
                self.transport.restart_idle(io);
                self.transport.arm_look(io, idle);
            }
            TimeoutCheck::Idle => {
                self.transport.finish(io, draining.map(|_| CLOSING_LINGER));
                return Some(Closing::Idle);
            }
        }
        // The connection may become idle before the deadline that was set while it was busy.
        if let Some(keepalive) = draining.filter(|_| !self.transport.is_closing()) {
            self.transport.look_in(io, keepalive.max(DRAIN_LOOK_MIN));
        }
        None
    }

    /// The client has shut down its sending direction. `true`: the session must be closed.
    pub fn handle_eof(&mut self, cx: &mut SessionContext<'_, '_>) -> bool {
        self.protocol.handle_eof(&mut self.transport, cx)
    }

    /// A client that is not being read has shut down its sending direction. `true`: the session must be closed.
    pub fn handle_end_ahead(&mut self, cx: &mut SessionContext<'_, '_>) -> bool {
        self.protocol.handle_end_ahead(&mut self.transport, cx)
    }

    /// Begins a graceful shutdown. Framed requests are rejected from now on. An HTTP connection is served until it has
    /// received a response with `Connection: close`, or was idle for `drain_keepalive_timeout`.
    pub fn begin_drain(&mut self, cx: &mut SessionContext<'_, '_>) {
        self.protocol.begin_drain(&mut self.transport, cx);
    }

    /// Whether this client may still submit a request during a drain.
    pub fn may_ask(&self) -> bool {
        !self.transport.is_closing() && self.protocol.may_ask()
    }

    /// The client has closed both directions; earlier bytes may be unread. `true`: the session must be closed.
    pub fn handle_hangup(&mut self, io: &Context<'_>) -> bool {
        if self.protocol.handle_hangup(&self.transport) {
            return true;
        }
        let unread = self.transport.is_paused() && self.transport.over_high_water(io);
        !self.transport.listener().keeps_half_closed || unread
    }

    /// Sending to a client that is not being read has failed. `true`: the session must be closed. Otherwise its earlier
    /// bytes are read, up to the end.
    pub fn handle_broken(&mut self, io: &mut Context<'_>) -> bool {
        if self.handle_hangup(io) {
            return true;
        }
        self.transport.resume(io);
        false
    }

    /// The client is gone or was disconnected. An incomplete request is written to the access log.
    pub fn end(&mut self, cause: Cause, cx: &mut SessionContext<'_, '_>) {
        self.protocol.end(&self.transport, cause, cx);
    }

    /// Allows a paused client to send requests, because the queue of its pool has room.
    pub fn grant(&mut self, grant: Grant) {
        self.protocol.grant(grant);
    }

    /// Removes the client from the clients that wait for room.
    pub fn stop_waiting(&mut self, cx: &mut SessionContext<'_, '_>) {
        self.protocol.stop_waiting(cx);
    }

    /// Checks the invariants that hold between two turns. For tests.
    pub fn check(&self) {
        self.protocol.check();
    }

    /// Whether the client has outstanding or unread replies.
    pub fn is_unread(&self, io: &Context<'_>) -> bool {
        self.is_owed() || self.transport.queued(io) > 0
    }

    /// Whether every request is answered and every reply was read. A session whose own program has served it is not
    /// idle, because the program keeps state for it.
    pub fn is_idle(&self, io: &Context<'_>, requests: &dyn Requests) -> bool {
        if self.is_unread(io) || self.protocol.is_waiting() {
            return false;
        }
        self.transport.is_closing() || self.protocol.is_idle(&self.transport, requests)
    }

    /// The memory of the session in bytes: output, waiting replies, and an incomplete request.
    pub fn held(&self, io: &Context<'_>) -> usize {
        io.memory_held(self.stream()).saturating_add(self.protocol.held())
    }

    /// The tick of the last traffic in either direction, in milliseconds.
    pub const fn silent_since(&self) -> u64 {
        self.transport.last_traffic()
    }

    /// The address under which the client was admitted, if the listener limits addresses.
    pub fn entry(&self) -> Option<Entry> {
        self.transport.entry()
    }

    /// The stream of the client.
    pub fn stream(&self) -> StreamId {
        self.transport.stream()
    }

    /// Calls `each` with the requests whose outcomes nobody will take.
    pub fn each_abandoned(&self, each: &mut dyn FnMut(RequestId)) {
        self.protocol.each_abandoned(each);
    }

    /// Whether a reply is outstanding or not written yet.
    pub fn is_owed(&self) -> bool {
        self.protocol.is_owed()
    }
}
