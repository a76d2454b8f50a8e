//! When a client of frames is read: not while it has too many requests in flight, its pool has no room, or its output
//! is above the high-water mark. Also the timeout of a frame.

use event::Context;

use super::{Frames, Input};
use crate::context::SessionContext;
use crate::transport::Transport;
use flow::permit::Permit;
use flow::requests::Requests;

impl Frames {
    pub(super) const fn waits_for_room(&self) -> bool {
        self.permit.is_waiting()
    }

    /// Whether a request of the client was received but not read, because there was no room for it.
    pub(super) fn is_unread(&self) -> bool {
        self.permit != Permit::Free
    }

    /// Returns the grant: the client has sent no further request.
    pub(super) fn return_grant(&mut self, cx: &mut SessionContext<'_, '_>) {
        if matches!(self.permit, Permit::Granted(_)) {
            self.stop_waiting_for_room(cx);
        }
    }

    pub(super) fn stop_waiting_for_room(&mut self, cx: &mut SessionContext<'_, '_>) {
        cx.requests.stop_waiting(self.pool, &mut self.permit);
    }

    /// Whether there is room for the next request, which has at most `come` bytes.
    pub(super) fn may_send(&mut self, come: usize, cx: &mut SessionContext<'_, '_>) -> bool {
        if come == 0 || self.input == Input::Refusing {
            return true;
        }
        let bytes = come.min(self.config.frame_max);
        cx.requests.may_send((self.pool, self.id, self.answered), &mut self.permit, bytes)
    }

    pub(super) fn is_full(&self, requests: &dyn Requests) -> bool {
        self.waits_for_room() || self.has_enough(requests)
    }

    /// Whether it has as many requests in flight as it may have.
    fn has_enough(&self, requests: &dyn Requests) -> bool {
        let waits = !self.reply_queue.is_empty()
            && !requests.may_ask_more(self.pool, self.id, self.answered);
        waits || self.reply_queue.len() >= self.config.in_flight_max
    }

    /// Sets or clears the deadline of an incomplete frame.
    pub(super) fn watch_begun(
        &mut self,
        transport: &Transport,
        io: &mut Context<'_>,
        rest: usize,
        found: bool,
    ) {
        let begun = !transport.is_paused() && self.decoder.is_begun(rest);
        if let Some(read) = self.config.read {
            if begun && (found || !self.begun) {
                transport.arm_read(io, read);
            } else if !begun && self.begun {
                transport.disarm_read(io);
            }
        }
        self.begun = begun;
    }

    /// Whether the client is gone and its outstanding requests are useless without it: messages (also those that wait
    /// for room in the queue), queries, and requests with a partial reply. They would occupy slots for no client.
    /// Other frames may be wanted without their replies. The client is not being read, so no read shows its end.
    pub(super) fn has_left(&self, transport: &Transport) -> bool {
        if !self.is_gone || !transport.is_paused() {
            return false;
        }
        let named = self.reply_queue.waits_for_named() || self.waits_for_room();
        self.config.framing.is_json() && named
            || self.reply_queue.streaming().is_some()
            || self.rows && !self.reply_queue.is_empty()
    }

    /// Resumes reading a paused client, if nothing prevents it; else the client returns its grant. A client that has left
    /// is disconnected.
    pub(super) fn read_on(
        &mut self,
        transport: &mut Transport,
        io: &mut Context<'_>,
        requests: &mut dyn Requests,
    ) {
        if !transport.is_paused() {
            return;
        }
        if self.has_left(transport) {
            return transport.reset(io);
        }
        let has_room = self.reply_queue.len() <= self.config.in_flight_max / 2;
        let is_readable = has_room && !self.has_enough(requests) && !transport.over_high_water(io);
        match self.permit {
            Permit::Waiting(_) => {}
            Permit::Parked(_) if is_readable => {
                requests.wait_again(self.pool, self.id, &mut self.permit);
            }
            Permit::Granted(_) if !is_readable => requests.park(self.pool, &mut self.permit),
            _ if is_readable => transport.resume(io),
            Permit::Free | Permit::Parked(_) | Permit::Granted(_) => {}
        }
    }
}
