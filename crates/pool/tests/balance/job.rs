//! A request in the naive model.

use std::time::Instant;

use pool::{Queueable, RequestTraits, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// The client of the request; `None`: the request binds no client.
    pub(crate) client: Option<[u8; 1]>,
    pub(crate) priority: u8,
    /// The group of the request. Requests with a client and requests without one are never in the same group.
    pub(crate) share: Option<u64>,
}

impl Queueable for Job {
    fn bytes(&self) -> usize {
        10
    }

    fn traits(&self) -> RequestTraits<'_> {
        let key = self.client.as_ref().map(<[u8; 1]>::as_slice);
        RequestTraits {
            id: self.id,
            key,
            priority: self.priority,
            share: self.share,
            ..RequestTraits::default()
        }
    }
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) job: Job,
    /// The step in which it arrived.
    pub(crate) came: u64,
    /// The worker that it waits for. A later binding, or the return of a worker, is handled when it is its turn.
    pub(crate) bound: Option<String>,
    /// The worker did not serve for a while: the request may have been released to another worker before it returned.
    pub(crate) was_let_go: bool,
    pub(crate) since: Instant,
    pub(crate) ticket: Ticket,
}
