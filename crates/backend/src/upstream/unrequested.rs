//! Handles servers that send bytes without a request: see `reuse_ban.rs`.

use std::time::Instant;

use event::Context;
use exchange::mutant::{Mutant, active};
use exchange::{WorkerId, WorkerIndex};

use super::Upstream;
use super::reuse_ban::ReuseBan;
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Resets the state of an index that is reassigned to another server.
    pub(super) fn reset_reuse_ban(&mut self, server: WorkerIndex) {
        let reports = self.room.as_ref().map_or(0, |room| room.reports(server));
        *self.reuse_ban.at(server) = ReuseBan { reports, ..ReuseBan::default() };
    }

    /// Whether the connections of a server may be reused.
    pub(super) fn may_reuse(&mut self, now: Instant, worker: WorkerId) -> bool {
        let reports = self.room.as_ref().map_or(0, |room| room.reports(worker.into()));
        let reuse_ban = self.reuse_ban.at(worker);
        if reuse_ban.reports != reports {
            reuse_ban.reports = reports;
            reuse_ban.ban(now);
        }
        reuse_ban.allows_reuse(now) || active(Mutant::Trusting)
    }

    /// Handles that a server sent bytes without a request.
    pub(super) fn ban_reuse(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        cx.events.push(BackendEvent::Unrequested);
        let reports = self.room.as_ref().map_or(0, |room| room.report(worker));
        let reuse_ban = self.reuse_ban.at(worker);
        reuse_ban.reports = reports;
        // While the server is distrusted, this is not logged again.
        if let Some(span) = reuse_ban.ban(cx.io.now()) {
            let (server, pool) = (self.address(worker), &self.pool);
            tracing::warn!(
                server,
                pool,
                "sent bytes that no request asked for; its connections are not reused for {} s",
                span.as_secs()
            );
        }
        self.close_idle(cx.io, worker);
    }

    /// Closes the idle connections to a server.
    pub(super) fn close_idle(&mut self, io: &mut Context<'_>, worker: WorkerId) {
        let idle = self.find(worker).map(|server| std::mem::take(&mut server.idle));
        for id in idle.unwrap_or_default() {
            self.close(io, id);
        }
    }
}
