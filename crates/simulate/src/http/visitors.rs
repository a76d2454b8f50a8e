//! Visitors (HTTP clients): their requests, and the replies that they parse.

use std::time::Duration;

use crate::http::message::{Reply, RequestKind};
use crate::http::tunnels::TunnelEnd;
use crate::scheduled_event::Moment;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitorRequest {
    pub(crate) id: u64,
    pub(crate) is_post: bool,
    pub(crate) length: usize,
    pub(crate) chunked: bool,
    pub(crate) request_kind: RequestKind,
    /// It sends only this part of the request, in thousandths.
    pub(crate) stalls: Option<usize>,
}

impl VisitorRequest {
    /// Whether its body exceeds the maximum size.
    pub(crate) const fn is_too_long(&self, body_max: usize) -> bool {
        self.is_post && self.length > body_max
    }
}

#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) asks: Vec<VisitorRequest>,
    /// The number of requests that were begun.
    pub(crate) begun: usize,
    /// One reply per answered request; the last one may be incomplete.
    pub(crate) answers: Vec<Reply>,
    /// When each request was begun and answered.
    pub(crate) times: Vec<(Moment, Moment)>,
    /// The number of requests that it sends before it waits for a reply.
    pub(crate) window: usize,
    pub(crate) pace: Duration,
    pub(crate) pause_until: Moment,
    /// When it resets the connection.
    pub(crate) resets_at: Option<Moment>,
    /// The body of its last request, which waits for a response of the gateway, at most until this time.
    pub(crate) held: Option<(Vec<u8>, Moment)>,
    /// How it ends a tunnel, when it is in one, and whether it has half-closed the tunnel.
    pub(crate) tunnel_end: Option<TunnelEnd>,
    pub(crate) is_silent: bool,
}
