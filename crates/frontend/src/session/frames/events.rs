//! What a session of frames does about each event.

use std::sync::Arc;

use event::Data;
use exchange::{PoolId, RequestId, Slice};

use super::{Frames, Input};
use crate::connection::ConnectionConfig;
use crate::context::SessionContext;
use crate::protocol::{Protocol, Received};
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

    fn deliver(
        &mut self,
        transport: &mut Transport,
        sequence: u64,
        reply_event: ReplyEvent,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.take_reply(transport, sequence, reply_event, cx);
    }

    fn flush(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        self.write_ready(transport, cx);
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

    fn handle_slow(&mut self, transport: &mut Transport, cx: &mut SessionContext<'_, '_>) {
        self.refuse_slow(transport, cx);
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

    /// It goes to another pool, and keeps the limits that it was let in with.
    fn handle_listener(
        &mut self,
        transport: &mut Transport,
        connection: &Arc<ConnectionConfig>,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.handle_pool(transport, connection.pool, cx);
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

    fn announce(
        &mut self,
        transport: &Transport,
        pool: PoolId,
        frame: &Slice,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        self.take_announcement(transport, pool, frame, cx)
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
