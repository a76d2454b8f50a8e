//! One client session: its stream, and the protocol that decodes requests and encodes replies.
//!
//! `transport.rs` has what all protocols share. Each protocol has its own file. It submits
//! requests to the engine under numbers that it assigns, receives parts and outcomes under these numbers, and writes
//! its output when it is flushed.

use std::sync::Arc;
use std::time::Duration;

use event::{Calls, Data, DeadlineName, StreamId};
use exchange::{Cause, ListenerId, Outcome, Peer, PoolId, RequestId, Slice};

use crate::listener::{FrontConfig, HttpConfig, ListenerConfig};
use crate::transport::{CLOSING_LINGER, LOOK, Look, READ, Transport};
use flow::address_limits::Entry;
use flow::client::Source;
use flow::ids::SessionId;
use flow::permit::Grant;
use flow::reply_event::ReplyEvent;
use flow::reply_head::Carried;
use flow::requests::Requests;
use observe::closings::Closing;

mod connect;
mod context;
mod frames;
mod http;
mod reply_queue;

use connect::Connect;
pub use context::{Scratch, SessionContext};
use frames::Frames;
use http::Http;
pub use http::Spares as SpareExchanges;
pub use http::{session_moves, session_moves_made};

/// During a drain, a connection is not examined more often than this.
const DRAIN_LOOK_MIN: Duration = Duration::from_millis(100);

/// One client session, from accept to close.
#[derive(Debug)]
pub struct Session {
    transport: Transport,
    front: Front,
}

/// The protocol of the client.
#[derive(Debug)]
enum Front {
    Frames(Box<Frames>),
    Connect(Box<Connect>),
    Http(Arc<HttpConfig>, Http),
}

impl Session {
    /// Starts the session of an accepted connection. `entry`: the address under which it was admitted, if the listener
    /// limits addresses.
    pub fn open(
        calls: &mut Calls<'_>,
        id: SessionId,
        stream: StreamId,
        (peer, entry): (Peer, Option<Entry>),
        listener: Arc<ListenerConfig>,
        cx: &mut SessionContext<'_>,
    ) -> Self {
        let front = match &listener.front {
            FrontConfig::Frames(plan) => Front::Frames(Box::new(Frames::new(
                id,
                listener.pool,
                Arc::clone(plan),
                cx.requests,
            ))),
            // There are no sessions of datagrams.
            FrontConfig::Connect | FrontConfig::Datagrams => {
                cx.entry = cx.requests.access_log().begin(listener.logged.as_ref());
                let source = Source::of_listener(peer, listener.id);
                Front::Connect(Box::new(Connect::open(id, listener.pool, source, entry, cx)))
            }
            FrontConfig::Http(plan) => Front::Http(Arc::clone(plan), Http::new(id)),
        };
        let transport = Transport::open(calls, stream, peer, entry, listener);
        Self { transport, front }
    }

    /// The listener that accepted the client.
    pub fn listener_id(&self) -> ListenerId {
        self.transport.listener().id
    }

    /// Sets whether the session is in the shard's list of sessions to flush, and returns the old value.
    pub const fn set_dirty(&mut self, dirty: bool) -> bool {
        std::mem::replace(&mut self.transport.dirty, dirty)
    }

    /// Writes the rejection of a datagram, or of a connection that does not become a session. For HTTP see
    /// [`Self::refuse_request`].
    pub fn refusal(listener: &ListenerConfig, outcome: &Outcome, out: &mut Vec<u8>) {
        match &listener.front {
            FrontConfig::Frames(plan) => plan.write_refusal(outcome, out),
            FrontConfig::Connect | FrontConfig::Datagrams => connect::write_refusal(outcome, out),
            FrontConfig::Http(_) => {}
        }
    }

    /// Writes the rejection of the first request of an HTTP connection that does not become a session, to the scratch
    /// memory of the context. `false`: the head is incomplete and, unless `is_last`, more of it may arrive.
    pub fn refuse_request(
        listener: &Arc<ListenerConfig>,
        bytes: &[u8],
        is_last: bool,
        outcome: &Outcome,
        cx: &mut SessionContext<'_>,
    ) -> bool {
        match &listener.front {
            FrontConfig::Http(plan) => plan.refuse_request(listener, (bytes, is_last), outcome, cx),
            FrontConfig::Frames(_) | FrontConfig::Connect | FrontConfig::Datagrams => true,
        }
    }

    /// Applies new settings of the listener. For HTTP they apply from the next request. A session of frames uses the
    /// new pool and keeps its limits.
    pub fn handle_listener(
        &mut self,
        calls: &mut Calls<'_>,
        listener: &Arc<ListenerConfig>,
        cx: &mut SessionContext<'_>,
    ) {
        match &mut self.front {
            Front::Frames(frames) => {
                frames.handle_pool(&mut self.transport, calls, listener.pool, cx);
            }
            // The only request was submitted.
            Front::Connect(_) => {}
            Front::Http(..) => self.take_over(calls, listener),
        }
    }

    /// Whether the listener has settings that the session does not use yet.
    pub fn is_behind(&self, listener: &Arc<ListenerConfig>) -> bool {
        !Arc::ptr_eq(self.transport.listener(), listener)
    }

    /// Applies new settings of the listener, unless a request is in progress.
    pub fn take_over(&mut self, calls: &mut Calls<'_>, listener: &Arc<ListenerConfig>) {
        if let (Front::Http(plan, http), FrontConfig::Http(new)) =
            (&mut self.front, &listener.front)
            && !http.is_at_work()
            && self.transport.queued(calls) == 0
        {
            *plan = Arc::clone(new);
            self.transport.handle_listener(calls, Arc::clone(listener));
        }
    }

    /// Handles received bytes.
    pub fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_>,
        spare_exchanges: &mut SpareExchanges,
    ) {
        if self.transport.is_closing() {
            return data.consume(data.bytes().len());
        }
        match &mut self.front {
            Front::Frames(frames) => frames.handle_data(&mut self.transport, calls, data, cx),
            Front::Connect(_) => return data.consume(data.bytes().len()),
            Front::Http(plan, http) => {
                http.handle_data(plan, &mut self.transport, calls, data, cx, spare_exchanges);
            }
        }
        let begun = match &self.front {
            Front::Connect(_) => true,
            // An empty line before a request or between messages does not begin one.
            Front::Frames(frames) => frames.has_begun(),
            Front::Http(_, http) => http.has_begun(),
        };
        self.transport.heard(calls, begun);
    }

    /// A program of this pool sent a message to all clients. Returns whether it applies to this client.
    pub fn announce(&mut self, pool: PoolId, frame: &Slice, cx: &mut SessionContext<'_>) -> bool {
        match &mut self.front {
            Front::Frames(frames) => frames.announce(&self.transport, pool, frame, cx),
            Front::Connect(_) | Front::Http(..) => false,
        }
    }

    /// Handles an event about request `sequence`.
    pub fn deliver(
        &mut self,
        calls: &mut Calls<'_>,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_>,
    ) {
        match &mut self.front {
            Front::Frames(frames) => frames.deliver(&self.transport, sequence, reply_event, cx),
            Front::Connect(connect) => connect.deliver(&self.transport, reply_event, cx),
            Front::Http(plan, http) => {
                http.deliver(plan, &mut self.transport, calls, sequence, reply_event, cx);
            }
        }
    }

    /// Handles a complete reply to request `sequence`: its head, and its outcome.
    pub fn deliver_whole(
        &mut self,
        calls: &mut Calls<'_>,
        sequence: u64,
        head: Carried,
        outcome: Outcome,
        cx: &mut SessionContext<'_>,
    ) {
        if let Front::Http(plan, http) = &mut self.front {
            return http.deliver_whole(
                plan,
                &mut self.transport,
                calls,
                (sequence, head, outcome),
                cx,
            );
        }
        self.deliver(calls, sequence, ReplyEvent::Head(head), cx);
        self.deliver(calls, sequence, ReplyEvent::End(outcome), cx);
    }

    /// Writes ready replies up to the high-water mark, resumes reading when there is room again, and closes the session
    /// when it is complete.
    pub fn flush(
        &mut self,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
        spare_exchanges: &mut SpareExchanges,
    ) {
        match &mut self.front {
            Front::Frames(frames) => frames.flush(&mut self.transport, calls, cx),
            Front::Connect(connect) => connect.flush(&mut self.transport, calls, cx),
            Front::Http(_, http) => http.flush(&mut self.transport, calls, cx, spare_exchanges),
        }
    }

    /// Closes the stream immediately. It is reset if an incomplete reply could be mistaken for a complete one.
    pub fn cut(&self, calls: &mut Calls<'_>) {
        let queued = self.transport.queued(calls);
        match &self.front {
            Front::Http(_, http) if http.would_look_whole(queued) => calls.reset(self.stream()),
            Front::Frames(frames) if frames.would_look_whole(queued) => calls.reset(self.stream()),
            _ => calls.close(self.stream()),
        }
    }

    /// Writes all ready replies, also above the high-water mark, and closes the session after they are sent.
    pub fn flush_and_finish(&mut self, calls: &mut Calls<'_>, cx: &mut SessionContext<'_>) {
        match &mut self.front {
            Front::Frames(frames) => {
                frames.flush_all(&mut self.transport, calls, &mut cx.scratch.bytes);
            }
            Front::Connect(connect) => {
                connect.flush_all(&mut self.transport, calls, &mut cx.scratch.bytes);
            }
            // Replies were written when they arrived.
            Front::Http(_, http) => http.refuse_begun(&mut self.transport, calls, cx),
        }
        if matches!(&self.front, Front::Http(_, http) if http.would_look_whole(0)) {
            return self.transport.reset(calls);
        }
        // A client that has received everything needs only the end. Others get time to read.
        let told = self.transport.queued(calls) == 0;
        self.transport.finish(calls, told.then_some(CLOSING_LINGER));
    }

    /// Handles a deadline. Returns the reason if the connection must be closed: immediately, or cleanly if it was
    /// [idle](Closing::Idle).
    pub fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        name: DeadlineName,
        cx: &mut SessionContext<'_>,
    ) -> Option<Closing> {
        match name {
            LOOK => return self.look(calls, cx.requests),
            READ => match &mut self.front {
                Front::Frames(frames) => frames.handle_slow(&self.transport, calls, cx),
                Front::Connect(_) => {}
                Front::Http(plan, http) => http.handle_slow(plan, &mut self.transport, calls, cx),
            },
            DeadlineName(_) => {}
        }
        None
    }

    fn look(&mut self, calls: &mut Calls<'_>, requests: &dyn Requests) -> Option<Closing> {
        let tunnel = match &self.front {
            Front::Http(plan, http) => http.tunnel_idle(plan, &self.transport),
            Front::Frames(_) | Front::Connect(_) => None,
        };
        let idle = tunnel.unwrap_or(self.transport.listener().idle);
        let draining = requests.drain_keepalive_timeout().filter(|_| self.may_ask());
        let idle = match (&self.front, draining) {
            (Front::Http(_, http), Some(keepalive)) if !http.is_at_work() => {
                Some(idle.map_or(keepalive, |idle| idle.min(keepalive)))
            }
            _ => idle,
        };
        match self.transport.look(calls, self.is_waited_for(calls), idle) {
            Look::Fine => {}
            Look::Silent => return Some(Closing::Silent),
            Look::Stalled => return Some(Closing::Stalled),
            Look::Slow => return Some(Closing::SlowReader),
            Look::Idle if tunnel.is_some() => return Some(Closing::TunnelIdle),
            Look::Idle if self.is_unread(calls) || self.is_waiting() => {
                self.transport.rest(calls);
                self.transport.arm_look(calls, idle);
            }
            Look::Idle => {
                self.transport.finish(calls, draining.map(|_| CLOSING_LINGER));
                return Some(Closing::Idle);
            }
        }
        // The connection may become idle before the deadline that was set while it was busy.
        if let Some(keepalive) = draining.filter(|_| !self.transport.is_closing()) {
            self.transport.look_in(calls, keepalive.max(DRAIN_LOOK_MIN));
        }
        None
    }

    /// The client has shut down its sending direction. `true`: the session must be closed.
    pub fn handle_eof(&mut self, calls: &mut Calls<'_>, cx: &mut SessionContext<'_>) -> bool {
        match &mut self.front {
            Front::Frames(frames) => frames.handle_eof(&self.transport, cx),
            Front::Connect(_) => {}
            Front::Http(_, http) => return http.handle_eof(&self.transport, calls, cx),
        }
        !self.transport.listener().keeps_half_closed
    }

    /// A client that is not being read has shut down its sending direction. `true`: the session must be closed.
    pub fn handle_end_ahead(&mut self, calls: &mut Calls<'_>, cx: &mut SessionContext<'_>) -> bool {
        match &mut self.front {
            Front::Http(_, http)
                if http.awaits_reply() && !self.transport.listener().keeps_half_closed =>
            {
                let has_left = http.handle_eof(&self.transport, calls, cx);
                // Earlier bytes are discarded, up to the end.
                self.transport.resume(calls);
                has_left
            }
            _ => false,
        }
    }

    /// Begins a graceful shutdown. Framed requests are rejected from now on. An HTTP connection is served until it has
    /// received a response with `Connection: close`, or was idle for `drain_keepalive_timeout`.
    pub fn begin_drain(&mut self, calls: &mut Calls<'_>, cx: &mut SessionContext<'_>) {
        match &mut self.front {
            Front::Frames(frames) => frames.refuse_all(&mut self.transport, calls, cx),
            // The only request was submitted.
            Front::Connect(_) => {}
            Front::Http(..) => self.transport.look_in(calls, Duration::ZERO),
        }
    }

    /// Whether this client may still submit a request during a drain.
    pub fn may_ask(&self) -> bool {
        match &self.front {
            Front::Frames(_) | Front::Connect(_) => false,
            Front::Http(_, http) => !self.transport.is_closing() && http.may_ask(),
        }
    }

    /// The client has closed both directions; earlier bytes may be unread. `true`: the session must be closed.
    pub fn handle_hangup(&mut self, calls: &Calls<'_>) -> bool {
        match &mut self.front {
            // HTTP requests are useless without their reply.
            Front::Http(..) => return true,
            Front::Frames(frames) => {
                if frames.handle_hangup(&self.transport) {
                    return true;
                }
            }
            Front::Connect(_) => {}
        }
        let unread = self.transport.is_paused() && self.transport.is_clogged(calls);
        !self.transport.listener().keeps_half_closed || unread
    }

    /// Sending to a client that is not being read has failed. `true`: the session must be closed. Otherwise its earlier
    /// bytes are read, up to the end.
    pub fn handle_broken(&mut self, calls: &mut Calls<'_>) -> bool {
        if self.handle_hangup(calls) {
            return true;
        }
        self.transport.resume(calls);
        false
    }

    /// The client is gone or was disconnected. An incomplete request is written to the access log.
    pub fn end(&mut self, cause: Cause, cx: &mut SessionContext<'_>) {
        match &mut self.front {
            Front::Frames(_) | Front::Connect(_) => {}
            Front::Http(_, http) => http.end_gathering(&self.transport, cause, cx),
        }
    }

    /// Allows a paused client to send requests, because the queue of its pool has room.
    pub fn grant(&mut self, grant: Grant) {
        if let Front::Frames(frames) = &mut self.front {
            frames.grant(grant);
        }
    }

    /// Removes the client from the clients that wait for room.
    pub fn stop_waiting(&mut self, cx: &mut SessionContext<'_>) {
        if let Front::Frames(frames) = &mut self.front {
            frames.stop_waiting(cx);
        }
    }

    /// Whether the client is paused because the queue of its pool is full.
    fn is_waiting(&self) -> bool {
        matches!(&self.front, Front::Frames(frames) if frames.is_unread())
    }

    /// Whether a reply that is not in the output buffer waits for the client.
    fn is_waited_for(&self, calls: &Calls<'_>) -> bool {
        match &self.front {
            Front::Frames(_) | Front::Connect(_) => false,
            Front::Http(_, http) => http.is_waited_for(calls),
        }
    }

    /// Checks the invariants that hold between two turns. For tests.
    pub fn check(&self) {
        if let Front::Http(_, http) = &self.front {
            http.check();
        }
    }

    /// Whether the client has outstanding or unread replies.
    pub fn is_unread(&self, calls: &Calls<'_>) -> bool {
        self.is_owed() || self.transport.queued(calls) > 0
    }

    /// Whether every request is answered and every reply was read. A session whose own program has served it is not
    /// idle, because the program keeps state for it.
    pub fn is_idle(&self, calls: &Calls<'_>, requests: &dyn Requests) -> bool {
        if self.is_unread(calls) || self.is_waiting() {
            return false;
        }
        self.transport.is_closing()
            || match &self.front {
                Front::Frames(frames) => {
                    frames.is_between_requests()
                        && (!frames.has_own(requests) || self.transport.is_silent())
                }
                Front::Connect(_) => false,
                Front::Http(_, http) => !http.has_begun(),
            }
    }

    /// The memory of the session in bytes: output, waiting replies, and an incomplete request.
    pub fn held(&self, calls: &Calls<'_>) -> usize {
        let replies = match &self.front {
            Front::Frames(frames) => frames.held(),
            Front::Connect(connect) => connect.held(),
            Front::Http(_, http) => http.held(),
        };
        calls.memory_held(self.stream()).saturating_add(replies)
    }

    /// The tick of the last traffic in either direction, in milliseconds.
    pub const fn silent_since(&self) -> u64 {
        self.transport.rested()
    }

    /// The address under which the client was admitted, if the listener limits addresses.
    pub fn entry(&self) -> Option<Entry> {
        self.transport.entry()
    }

    /// The stream of the client.
    pub fn stream(&self) -> StreamId {
        self.transport.stream()
    }

    /// The requests in flight, to abandon when the session is closed.
    pub fn abandoned(&self) -> impl Iterator<Item = RequestId> {
        let (frames, one) = match &self.front {
            Front::Frames(frames) => (Some(frames.abandoned()), None),
            Front::Connect(connect) => (None, connect.abandoned()),
            Front::Http(_, http) => (None, http.abandoned()),
        };
        frames.into_iter().flatten().chain(one)
    }

    /// Whether a reply is outstanding or not written yet.
    pub fn is_owed(&self) -> bool {
        match &self.front {
            Front::Frames(frames) => frames.is_owed(),
            Front::Connect(connect) => connect.is_owed(),
            Front::Http(_, http) => http.is_owed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an idle connection owns in tables, beside its stream (`event`: 104 bytes and its
    /// generation) and one alarm of 40 bytes.
    #[test]
    fn an_idle_client_owns_little() {
        assert!(size_of::<Session>() <= 112, "a session: {} bytes", size_of::<Session>());
    }
}
