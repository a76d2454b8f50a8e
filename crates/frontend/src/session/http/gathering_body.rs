//! A request whose body is buffered before it is submitted.

use event::Data;
use exchange::{Peer, PoolId};
use wire::http1::{Body, Kind, Refusal};

use super::local_reply::ReplyForm;
use crate::bodies::{BodyShare, Full};
use crate::listener::HttpConfig;
use crate::routing::RouteId;
use flow::http_request::HttpRequest;
use observe::access_log::AccessEntry;

/// A request whose body is being buffered. Its size is limited by the listener.
#[derive(Debug)]
pub(super) struct BufferedBody {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    /// The head as the worker receives it.
    pub(super) request: HttpRequest,
    /// The HTTP status and type for a reply without a head.
    pub(super) told: ReplyForm,
    pub(super) body: Body,
    /// The received part of the body.
    pub(super) held: Vec<u8>,
    pub(super) share: BodyShare,
    /// Its access log entry, kept here because other requests are submitted before it.
    pub(super) log_entry: Option<Box<AccessEntry>>,
}

impl BufferedBody {
    /// The size of the received part of the body, in bytes.
    pub(super) const fn held(&self) -> usize {
        self.held.len()
    }
}

/// The state of a body.
pub(super) enum Taken {
    More,
    Whole,
    /// A limit of buffered bodies was reached.
    Full(Full),
}

impl BufferedBody {
    /// Begins to buffer the body of a request with this head.
    pub(super) fn new(
        (pool, route): (PoolId, RouteId),
        config: &HttpConfig,
        peer: Peer,
        request: HttpRequest,
        told: ReplyForm,
    ) -> Self {
        let body = Body::new(request.head().body, &config.limits);
        let (held, share) = (Vec::new(), config.share(peer));
        Self { pool, route, request, told, body, held, share, log_entry: None }
    }

    /// The route of the request.
    pub(super) const fn route(&self) -> RouteId {
        self.route
    }

    /// Buffers the received part of the body.
    pub(super) fn take(
        &mut self,
        config: &HttpConfig,
        data: &mut Data<'_>,
    ) -> Result<Taken, Refusal> {
        while !self.body.is_done() {
            let Some(span) = self.body.next(data.bytes(), &config.limits)? else { break };
            if span.kind == Kind::Data {
                if let Err(full) = self.share.take(span.length, config.body_limits) {
                    return Ok(Taken::Full(full));
                }
                self.held.extend_from_slice(&data.bytes()[..span.length]);
            }
            data.consume(span.length);
        }
        Ok(if self.body.is_done() { Taken::Whole } else { Taken::More })
    }
}
