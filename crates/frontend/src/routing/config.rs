//! The routes of a listener.

use std::sync::Arc;

use exchange::{PoolId, Slice};
use route::{Edits, Guard, Rewrite, Table, Template};

/// Which way requests of a listener go.
#[derive(Debug)]
pub struct RoutingConfig {
    pub table: Table,
    /// By their places in the table.
    pub routes: Vec<RouteConfig>,
    /// For requests that no route is for.
    pub rest: Option<RouteConfig>,
    /// Who is told that there is no route.
    pub guard: Option<Arc<GuardConfig>>,
    /// What is changed in replies to requests of no route.
    pub reply: Edits,
    /// Some route keeps requests from a pool, so no other spelling of its paths may pass it by.
    pub is_guarded: bool,
}

/// What becomes of the requests of a route.
#[derive(Debug)]
pub struct RouteConfig {
    pub action: Action,
    pub guard: Option<Arc<GuardConfig>>,
    pub request: Edits,
    pub reply: Edits,
    /// Its requests may ask for another protocol.
    pub allow_upgrade: bool,
    /// Segments of its prefix; what lies behind them is the rest of a path.
    pub segments: usize,
}

impl RouteConfig {
    /// Whether it answers all requests with an error.
    pub const fn rejects(&self) -> bool {
        matches!(self.action, Action::Fixed { status: 400.., .. })
    }

    /// Whether it lets only some requests through, or answers all with an error.
    pub const fn is_guard(&self) -> bool {
        self.guard.is_some() || self.rejects()
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Action {
    Pool { pool: PoolId, rewrite: Option<Rewrite> },
    Redirect { status: u16, to: Template },
    Fixed { status: u16, body: Slice, content_type: String },
}

/// Who is let through.
#[derive(Debug)]
pub struct GuardConfig {
    pub guard: Guard,
    /// The server gets the credentials too.
    pub forwards: bool,
    /// What the others are told.
    pub challenges: Vec<u8>,
}
