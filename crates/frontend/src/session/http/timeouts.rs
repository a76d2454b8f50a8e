//! Timeouts of slow clients: a head must be complete within `request_read_timeout`, and a body must reach its minimum rate over each
//! `request_read_timeout`, while the worker accepts it.

use event::Context;
use exchange::Cause;

use super::rejection::Why;
use super::{HttpExchange, Input};
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::rate::is_enough;
use crate::transport::Transport;

impl HttpExchange {
    /// Sets the deadline of an incomplete head. An empty line before it does not begin one.
    pub(super) fn watch_head(
        &mut self,
        config: &HttpConfig,
        transport: &Transport,
        io: &mut Context<'_>,
    ) {
        if !self.scan.is_begun() {
            self.unwatch(transport, io);
        } else if !self.watched {
            self.watch_anew(config, transport, io);
        }
    }

    pub(super) fn watch_anew(
        &mut self,
        config: &HttpConfig,
        transport: &Transport,
        io: &mut Context<'_>,
    ) {
        if let Some(read) = config.read {
            self.watched = true;
            self.came = 0;
            transport.arm_read(io, read);
        }
    }

    /// Counts bytes of a body. They do not move the deadline: the total is checked when it expires.
    pub(super) fn watch_body(
        &mut self,
        config: &HttpConfig,
        transport: &Transport,
        io: &mut Context<'_>,
        came: usize,
    ) {
        if let Some(asked) = &mut self.asked {
            asked.waits = false;
        }
        if !self.watched {
            self.watch_anew(config, transport, io);
        }
        self.came = self.came.saturating_add(came);
    }

    pub(super) fn unwatch(&mut self, transport: &Transport, io: &mut Context<'_>) {
        if std::mem::take(&mut self.watched) {
            transport.disarm_read(io);
        }
    }

    /// Handles the deadline of a head or a body.
    pub(super) fn handle_slow(
        &mut self,
        config: &HttpConfig,
        transport: &mut Transport,
        cx: &mut SessionContext<'_, '_>,
    ) {
        self.watched = false;
        // A body that the worker does not accept yet is not late.
        if self.asked.as_ref().is_some_and(|asked| !asked.wanted) {
            return;
        }
        let is_body = matches!(self.input, Input::Body(_) | Input::BufferedBody(_));
        let read = config.read.unwrap_or_default();
        if is_body && is_enough(self.came as u64, config.body_rate_min, read) {
            return self.watch_anew(config, transport, cx.io);
        }
        self.restore_trail(cx);
        let text = "a request that was begun did not end in time";
        let route = self.route();
        let why = Why::of(Cause::Incomplete, text);
        self.refuse_with(transport, (408, route), why, cx);
    }
}
