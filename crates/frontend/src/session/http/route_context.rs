//! Which way a request goes, and what its route makes of it.

use exchange::{Peer, PoolId};
use wire::http1::RequestHead;

use crate::listener::HttpConfig;
use crate::routing::{RouteConfig, RouteId};

/// Which way a request goes, and what its route changes in it.
pub(super) struct RouteContext<'a> {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    pub(super) changes: Option<&'a RouteConfig>,
}

impl RouteContext<'_> {
    /// Makes a head what its worker is to see: nothing that concerned the client's connection is left, and
    /// what the route changes is changed.
    pub(super) fn prepare(&self, plan: &HttpConfig, peer: Peer, head: &mut RequestHead) {
        head.prepare(&plan.forwarded_for(peer, head.version));
        if let Some(changes) = self.changes {
            changes.change(head);
        }
    }
}
