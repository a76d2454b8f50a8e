//! The configuration of the routes of a listener.

use std::sync::Arc;

use exchange::{PoolId, Slice};
use route::{Authenticator, Edits, Rewrite, Table, Template};

/// The routes of a listener.
#[derive(Debug)]
pub struct RoutingConfig {
    /// The conditions of the routes.
    pub table: Table,
    /// The routes, by their index in the table.
    pub routes: Vec<RouteConfig>,
    /// The default route; `None`: requests without a route are answered with 404.
    pub rest: Option<RouteConfig>,
    /// The credentials that are required before a missing route is disclosed.
    pub guard: Option<Arc<GuardConfig>>,
    /// Changes of the headers of replies to requests without a route.
    pub reply: Edits,
    /// Some route restricts access, so ambiguous spellings of paths must be rejected.
    pub is_guarded: bool,
}

/// The configuration of a route.
#[derive(Debug)]
pub struct RouteConfig {
    /// What happens to a request.
    pub action: Action,
    /// The credentials that are required; `None`: none.
    pub guard: Option<Arc<GuardConfig>>,
    /// Changes of request headers.
    pub request: Edits,
    /// Changes of reply headers.
    pub reply: Edits,
    /// Upgrades to another protocol are accepted.
    pub allow_upgrade: bool,
    /// The number of segments in its path prefix.
    pub segments: usize,
}

impl RouteConfig {
    /// Whether the route answers all requests with an error.
    pub const fn rejects(&self) -> bool {
        matches!(self.action, Action::Fixed { status: 400.., .. })
    }

    /// Whether the route restricts access: it requires credentials, or answers all requests with an error.
    pub const fn is_guard(&self) -> bool {
        self.guard.is_some() || self.rejects()
    }
}

/// What happens to a request.
#[derive(Debug)]
pub enum Action {
    /// It goes to a pool.
    Pool {
        /// The pool.
        pool: PoolId,
        /// The change of its path.
        rewrite: Option<Rewrite>,
    },
    /// It is answered with a redirect.
    Redirect {
        /// The status code.
        status: u16,
        /// The value of `Location`.
        to: Template,
    },
    /// It is answered with a fixed response.
    Fixed {
        /// The status code.
        status: u16,
        /// The body.
        body: Slice,
        /// The value of `Content-Type`.
        content_type: String,
    },
}

/// The credentials that a route requires.
#[derive(Debug)]
pub struct GuardConfig {
    /// The accepted credentials.
    pub guard: Authenticator,
    /// The credentials are also forwarded to the server.
    pub forwards: bool,
    /// `WWW-Authenticate` header lines for other requests, each ending in CRLF.
    pub challenges: Vec<u8>,
}
