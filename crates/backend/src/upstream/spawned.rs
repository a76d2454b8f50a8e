//! Servers that are programs of ours: they come to an address and go from it.

use event::Calls;
use exchange::{WorkerId, WorkerIndex};

use super::fault::Fault;
use super::link::Flight;
use super::{LinkId, Upstream};
use flow::backend_event::BackendEvent;

impl Upstream {
    /// This worker listens there, and is called so.
    pub(crate) fn settle_at(&mut self, worker: WorkerId, address: event::Address, shown: &str) {
        let nowhere = || (event::Address::Unix(std::path::PathBuf::new()), String::new());
        *self.plan.addresses.at_with(worker, nowhere) = (address, shown.to_owned());
    }

    /// Where it listens.
    pub(crate) fn home(&self, worker: WorkerId) -> Option<&event::Address> {
        self.plan.addresses.get(worker).map(|(address, _)| address)
    }

    /// It was not the program that took this connection. Nothing was sent on it, and the program serves
    /// nobody any more.
    pub(crate) fn refuse(
        &mut self,
        calls: &mut Calls<'_>,
        link: LinkId,
        up: &mut Vec<BackendEvent>,
    ) {
        self.lose(calls, link, Fault::Taken, up);
    }

    /// More connections wait to be accepted than the program asked for. The request goes back to the
    /// queue, and its slot stays taken for a while: to try at once again would be to try all the time.
    pub(super) fn backlog_full(
        &mut self,
        worker: WorkerId,
        flight: Option<Flight>,
        up: &mut Vec<BackendEvent>,
    ) {
        if !std::mem::replace(&mut self.has_crowded, true) {
            let program = self.address(worker);
            tracing::warn!(
                worker = program,
                "lets no more connections wait: lower `pipeline`, or raise its backlog"
            );
        }
        if let Some(Flight { id, payload, meta, .. }) = flight.filter(|flight| !flight.abandoned) {
            up.push(BackendEvent::Retry { id, payload, meta, failed: None });
        }
        self.crowded.push(worker);
    }

    /// Whether slots stay taken because backlogs were full.
    pub(crate) const fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// One of these slots is free again; gives whose.
    pub(crate) fn next_crowded(&mut self) -> Option<WorkerId> {
        self.crowded.pop()
    }

    /// There may be room in its backlog.
    pub(crate) fn try_crowded(&mut self, worker: WorkerId, up: &mut Vec<BackendEvent>) {
        self.release(worker, false, up);
    }

    /// It gets no further request, and ends once what it has is answered.
    pub(crate) fn drain(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        self.retire(calls, worker, up);
        self.try_end(worker, false, up);
    }

    /// It has gone: what it had goes back or ends.
    pub(crate) fn mark_gone(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        self.retire(calls, worker, up);
        let before = self.crowded.len();
        self.crowded.retain(|crowded| *crowded != worker);
        for _ in self.crowded.len()..before {
            self.release(worker, false, up);
        }
        for id in self.links.places().into_iter().map(LinkId) {
            match self.link(id) {
                Some(link) if link.worker == worker && link.flight.is_some() => {
                    self.lose(calls, id, Fault::Ended, up);
                }
                Some(link) if link.worker == worker => self.close(calls, id),
                _ => {}
            }
        }
        self.try_end(worker, false, up);
    }

    /// Whose a link is.
    pub(crate) fn worker_of(&mut self, id: LinkId) -> Option<WorkerId> {
        self.link(id).map(|link| link.worker)
    }

    /// Whether a reply of it that is there waits for its client.
    pub(crate) fn is_held(&self, calls: &Calls<'_>, worker: WorkerId) -> bool {
        let mut links = self.links.values().filter(|link| link.worker == worker);
        links.any(|link| {
            link.flight.as_ref().is_some_and(|it| it.held || calls.relay_waits(link.stream))
        })
    }

    /// What a worker has in its hands, and what it has answered.
    pub(crate) fn load(&self, worker: WorkerIndex) -> (usize, u64) {
        let server = self.live.get(worker).and_then(Option::as_ref);
        server.map_or((0, 0), |server| (server.in_flight as usize, server.served))
    }
}
