//! The handling of servers that send unrequested bytes: see `trust.rs`.

use std::time::Instant;

use event::Calls;
use exchange::plant::{Plant, active};
use exchange::{WorkerId, WorkerIndex};

use super::Upstream;
use super::trust::Trust;
use flow::backend_event::BackendEvent;

impl Upstream {
    /// Resets the state of an index that another server gets.
    pub(super) fn forget_trust(&mut self, server: WorkerIndex) {
        let reports = self.room.as_ref().map_or(0, |room| room.reports(server));
        *self.trust.at(server) = Trust { reports, ..Trust::default() };
    }

    /// Whether the connections of a server may be reused.
    pub(super) fn may_reuse(&mut self, now: Instant, worker: WorkerId) -> bool {
        let reports = self.room.as_ref().map_or(0, |room| room.reports(worker.into()));
        let trust = self.trust.at(worker);
        if trust.reports != reports {
            trust.reports = reports;
            trust.distrust(now);
        }
        trust.is_given(now) || active(Plant::Trusting)
    }

    /// A server sent bytes without a request.
    pub(super) fn distrust_replies(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        up.push(BackendEvent::Unrequested);
        let reports = self.room.as_ref().map_or(0, |room| room.report(worker));
        let trust = self.trust.at(worker);
        trust.reports = reports;
        // While it is distrusted, this is not logged again.
        if let Some(span) = trust.distrust(calls.now()) {
            let (server, pool) = (self.address(worker), &self.pool);
            tracing::warn!(
                server,
                pool,
                "sent bytes that no request asked for; its connections are not reused for {} s",
                span.as_secs()
            );
        }
        self.close_idle(calls, worker);
    }

    /// Closes an idle connection to any server. `false`: there is none.
    pub(crate) fn close_one_idle(&mut self, calls: &mut Calls<'_>) -> bool {
        let idle = self
            .live
            .iter()
            .filter_map(|(_, it)| it.as_ref())
            .find_map(|server| server.idle.first().copied());
        idle.inspect(|id| self.close(calls, *id)).is_some()
    }

    /// Closes the idle connections to a server.
    pub(super) fn close_idle(&mut self, calls: &mut Calls<'_>, worker: WorkerId) {
        let idle = self.find(worker).map(|server| std::mem::take(&mut server.idle));
        for id in idle.unwrap_or_default() {
            self.close(calls, id);
        }
    }
}
