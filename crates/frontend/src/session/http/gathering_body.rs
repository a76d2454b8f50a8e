//! A request whose body is taken whole before it is submitted.

use event::Data;
use exchange::{Peer, PoolId};
use wire::http1::{Body, Kind, Refusal};

use super::local_reply::Told;
use crate::bodies::{BodyShare, Full};
use crate::listener::HttpConfig;
use crate::routing::RouteId;
use flow::http_request::HttpRequest;
use observe::access_log::AccessEntry;

/// A request whose body comes. It holds at most what the listener takes as a body.
#[derive(Debug)]
pub(super) struct BufferedBody {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    /// Its head, as its worker is to see it.
    pub(super) request: HttpRequest,
    /// What a reply without a head of its own is.
    pub(super) told: Told,
    pub(super) body: Body,
    /// What has come of it.
    pub(super) held: Vec<u8>,
    pub(super) share: BodyShare,
    /// Of its line in the access log: others are submitted before it.
    pub(super) log_entry: Option<Box<AccessEntry>>,
}

impl BufferedBody {
    /// Bytes of the body that have come.
    pub(super) const fn held(&self) -> usize {
        self.held.len()
    }
}

/// What has come of a body.
pub(super) enum Taken {
    More,
    Whole,
    /// All bodies together, or those of its client, may hold no more.
    Full(Full),
}

impl BufferedBody {
    /// One with this head.
    pub(super) fn new(
        (pool, route): (PoolId, RouteId),
        plan: &HttpConfig,
        peer: Peer,
        request: HttpRequest,
        told: Told,
    ) -> Self {
        let body = Body::new(request.head().body, &plan.limits);
        let (held, share) = (Vec::new(), plan.share(peer));
        Self { pool, route, request, told, body, held, share, log_entry: None }
    }

    /// Which way its request goes.
    pub(super) const fn route(&self) -> RouteId {
        self.route
    }

    /// Takes what is there of the body.
    pub(super) fn take(
        &mut self,
        plan: &HttpConfig,
        data: &mut Data<'_>,
    ) -> Result<Taken, Refusal> {
        while !self.body.is_done() {
            let Some(span) = self.body.next(data.bytes(), &plan.limits)? else { break };
            if span.kind == Kind::Data {
                if let Err(full) = self.share.take(span.length, plan.body_limits) {
                    return Ok(Taken::Full(full));
                }
                self.held.extend_from_slice(&data.bytes()[..span.length]);
            }
            data.consume(span.length);
        }
        Ok(if self.body.is_done() { Taken::Whole } else { Taken::More })
    }
}
