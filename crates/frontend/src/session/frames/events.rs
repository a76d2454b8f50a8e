//! What a session of frames does about each event.

use std::sync::Arc;

use event::Data;
use exchange::{Cause, Outcome, Phase, PoolId, RequestId, Slice};

use super::{Ending, Frames, Input};
use crate::connection::ConnectionConfig;
use crate::context::SessionContext;
use crate::protocol::{Protocol, Received};
use crate::session::reply_queue::Name;
use crate::transport::Transport;
use flow::permit::{Grant, Permit};
use flow::reply_event::ReplyEvent;
use flow::requests::Requests;
use observe::closings::Closing;

impl Protocol for Frames {
    fn handle_data(
        &mut self,
        transport: &mut Transport,
        data: &mut Data<'_>,
        cx: &mut SessionContext<'_, '_>,
    ) -> Received {
        self.read(transport, data, cx);
        if self.take_wrong_protocol() {
            return Received::Rejected(Closing::WrongProtocol);
        }
        // An empty line between messages is nothing yet.
        Received::of(self.has_begun())
    }

    /// Handles an event about request `sequence`. If it exceeds a limit, the client receives an error instead, and the
    /// engine is notified.
    fn deliver(
        &mut self,
        transport: &mut Transport,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.answered |= matches!(
            reply_event,
            ReplyEvent::Part(_) | ReplyEvent::BodyWanted(true) | ReplyEvent::End(Outcome::Reply(_))
        );
        if let ReplyEvent::Finished = reply_event {
            self.input = Input::Ended;
            self.ending = Ending::Silent;
            return;
        }
        let limits = self.limits();
        if let ReplyEvent::Unsolicited(_, frame) = reply_event {
            if let Some(outcome) = self.reply_queue.push_aside(frame, limits) {
                cx.requests.note_undelivered(self.pool, transport.peer(), &outcome);
            }
            return;
        }
        if let Some((more, outcome)) = self.reply_queue.deliver(sequence, reply_event, limits) {
            cx.requests.note_undelivered(self.pool, transport.peer(), &outcome);
            if let Some(request) = more {
                cx.requests.abandon(request, Cause::Reply);
            }
        }
    }

    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        let high = transport.listener().limits.send_high;
        self.write_below(transport, cx.io, &mut cx.scratch.bytes, high);
        self.pause_reply(transport, cx);
        self.read_on(transport, cx.io, cx.requests);
        if self.input == Input::Ended
            && self.reply_queue.is_empty()
            && !self.reply_queue.has_asides()
        {
            if self.ending == Ending::Reset {
                self.reset(transport, cx.io);
            } else {
                transport.finish(cx.io, None);
            }
        }
    }

    fn flush_all(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        self.write_below(transport, cx.io, &mut cx.scratch.bytes, usize::MAX);
        false
    }

    /// Whether a frame has begun since the client connected.
    fn has_begun(&self) -> bool {
        self.begun || self.is_unread() || self.reply_queue.next_number() > 0
    }

    fn is_owed(&self) -> bool {
        !self.reply_queue.is_empty() || self.reply_queue.has_asides()
    }

    fn each_abandoned(&self, each: &mut dyn FnMut(RequestId)) {
        self.reply_queue.requests().for_each(each);
    }

    /// Bytes of replies that wait.
    fn held(&self) -> usize {
        self.reply_queue.held()
    }

    /// A frame was not complete in time. It is rejected, and the connection ends after the outstanding replies.
    fn handle_slow(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if self.ending == Ending::Reset {
            // The flush of the session checks the output.
            return;
        }
        let text = format!("a {} that was begun did not end in time", self.config.as_str());
        let outcome = Outcome::ended(Cause::Incomplete, Phase::Receive, &text);
        self.refuse(transport, outcome, Name::Unknown, cx);
        self.input = Input::Ended;
        transport.disarm_read(cx.io);
    }

    fn handle_eof(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) -> bool {
        if self.input != Input::Ended {
            self.finish_too_long(transport, cx);
        }
        self.input = Input::Ended;
        !transport.listener().keeps_half_closed
    }

    fn handle_hangup(&mut self, transport: &Transport) -> bool {
        self.is_gone = true;
        self.has_left(transport)
    }

    /// Sends further requests to the new pool, unless its replies are of another kind than those of the old pool. The
    /// client keeps the limits that it was admitted with.
    fn handle_listener(
        &mut self,
        transport: &mut Transport,
        connection: &Arc<ConnectionConfig>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let pool = connection.pool;
        if pool != self.pool
            && cx.requests.replies_lines(pool) == cx.requests.replies_lines(self.pool)
        {
            self.stop_waiting_for_room(cx);
            self.pool = pool;
            self.read_on(transport, cx.io, cx.requests);
        }
    }

    /// Requests are rejected from now on.
    fn begin_drain(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        if self.input == Input::Open {
            self.input = Input::Refusing;
        }
        if self.waits_for_room() {
            self.stop_waiting_for_room(cx);
            self.read_on(transport, cx.io, cx.requests);
        }
    }

    /// A client whose own program has served it is not idle: the program knows what only this client knows.
    fn is_idle(&self, transport: &Transport, requests: &dyn Requests) -> bool {
        !self.begun && (!requests.has_owners(self.pool) || transport.is_silent())
    }

    /// Replies of raw bytes have no other end than that of the connection.
    fn would_look_whole(&self, queued: usize) -> bool {
        self.config.resets && (queued > 0 || !self.reply_queue.is_empty())
    }

    /// A program of this pool sent a message to all clients. Clients receive it if they have received a reply from the
    /// pool.
    fn announce(
        &mut self,
        transport: &Transport,
        pool: PoolId,
        frame: &Slice,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let hears = self.answered && pool == self.pool && self.config.framing.is_json();
        if !hears || self.reply_queue.has_aside(frame) {
            return false;
        }
        let limits = self.limits();
        if let Some(outcome) = self.reply_queue.push_aside(frame.clone(), limits) {
            cx.requests.note_undelivered(self.pool, transport.peer(), &outcome);
        }
        true
    }

    fn is_waiting(&self) -> bool {
        self.is_unread()
    }

    fn grant(&mut self, grant: Grant) {
        self.permit = Permit::Granted(grant);
    }

    fn stop_waiting(&mut self, cx: &mut SessionContext<'_, '_>) {
        self.stop_waiting_for_room(cx);
    }
}
