//! Clients that are too slow: a head has the time of `read`, and a body has to bring enough in each such
//! time, for as long as the worker wants it.

use event::Calls;
use exchange::Cause;

use super::rejection::Why;
use super::{HttpExchange, Input};
use crate::listener::HttpConfig;
use crate::rate::is_enough;
use crate::session::SessionContext;
use crate::transport::Transport;

impl HttpExchange {
    /// A head that was begun must come to its end in time; an empty line before it is not begun.
    pub(super) fn watch_head(
        &mut self,
        plan: &HttpConfig,
        transport: &Transport,
        calls: &mut Calls<'_>,
    ) {
        if !self.scan.is_begun() {
            self.unwatch(transport, calls);
        } else if !self.watched {
            self.watch_anew(plan, transport, calls);
        }
    }

    pub(super) fn watch_anew(
        &mut self,
        plan: &HttpConfig,
        transport: &Transport,
        calls: &mut Calls<'_>,
    ) {
        if let Some(read) = plan.read {
            self.watched = true;
            self.came = 0;
            transport.arm_read(calls, read);
        }
    }

    /// So much of a body has come. Its deadline is not put off by that: when it has passed it is looked
    /// how much has come in all.
    pub(super) fn watch_body(
        &mut self,
        plan: &HttpConfig,
        transport: &Transport,
        calls: &mut Calls<'_>,
        came: usize,
    ) {
        if let Some(asked) = &mut self.asked {
            asked.waits = false;
        }
        if !self.watched {
            self.watch_anew(plan, transport, calls);
        }
        self.came = self.came.saturating_add(came);
    }

    pub(super) fn unwatch(&mut self, transport: &Transport, calls: &mut Calls<'_>) {
        if std::mem::take(&mut self.watched) {
            transport.disarm_read(calls);
        }
    }

    /// The time of a head or a body has passed.
    pub(super) fn handle_slow(
        &mut self,
        plan: &HttpConfig,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        cx: &mut SessionContext<'_>,
    ) {
        self.watched = false;
        // A body that nobody wants yet is not late.
        if self.asked.as_ref().is_some_and(|asked| !asked.wanted) {
            return;
        }
        let is_body = matches!(self.input, Input::Body(_) | Input::BufferedBody(_));
        let read = plan.read.unwrap_or_default();
        if is_body && is_enough(self.came as u64, plan.body_rate_min, read) {
            return self.watch_anew(plan, transport, calls);
        }
        self.restore_trail(cx);
        let text = "a request that was begun did not end in time";
        let route = self.route();
        let why = Why::of(Cause::Incomplete, text);
        self.refuse_with(transport, calls, (408, route), why, cx);
    }
}
