//! The destination of a request and the changes of its route.

use exchange::{Peer, PoolId};
use wire::http1::RequestHead;

use crate::listener::HttpConfig;
use crate::routing::{RouteConfig, RouteId};

/// The destination of a request and the changes of its route.
pub(super) struct RouteContext<'a> {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    pub(super) changes: Option<&'a RouteConfig>,
}

impl RouteContext<'_> {
    /// Prepares a head for its worker: removes hop-by-hop headers and applies the changes of the route.
    pub(super) fn prepare(&self, config: &HttpConfig, peer: Peer, head: &mut RequestHead) {
        head.prepare(&config.forwarded_for(peer, head.version));
        if let Some(changes) = self.changes {
            changes.change(head);
        }
    }
}
