//! A request, as the naive view sees it.

use std::time::Instant;

use pool::{Queueable, RequestTraits, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// Whose it is; none: nobody is bound by it.
    pub(crate) client: Option<[u8; 1]>,
    pub(crate) priority: u8,
    /// With whom it shares. Those with a client and those without never share.
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
    /// The step in which it came.
    pub(crate) came: u64,
    /// Whom it waits for. Who was bound since, or whose worker is back, is looked at in its turn.
    pub(crate) bound: Option<String>,
    /// That worker served nobody for a while: it may have been let go for another, and come back.
    pub(crate) was_let_go: bool,
    pub(crate) since: Instant,
    pub(crate) ticket: Ticket,
}
