//! A request whose body is taken whole before it is submitted.

use std::net::IpAddr;

use event::Data;
use exchange::{Peer, PoolId};
use wire::http1::{Body, Kind, Method, Refusal, RequestHead, Version, object};

use super::course::Course;
use crate::bodies::{BodyShare, Full};
use crate::listener::HttpConfig;
use crate::logbook::Trail;
use crate::routing::RouteId;

/// A request whose body comes. It holds at most what the listener takes as a body.
#[derive(Debug)]
pub(super) struct Gathering {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) keep: bool,
    /// The object, up to the body; without one the body goes alone.
    pub(super) object: Option<Vec<u8>>,
    pub(super) body: Body,
    /// What has come of it.
    pub(super) held: Vec<u8>,
    pub(super) share: BodyShare,
    /// Of its line in the access log: others are submitted before it.
    pub(super) trail: Option<Box<Trail>>,
}

impl Gathering {
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

impl Gathering {
    /// One of a head as its server is to see it; `client`: who asked.
    pub(super) fn new(
        course: &Course<'_>,
        plan: &HttpConfig,
        (peer, client): (Peer, Option<IpAddr>),
        head: &RequestHead,
    ) -> Self {
        let body = Body::new(head.body, &plan.limits);
        let keep = head.connection.keep_alive;
        let (method, version) = (head.method(), head.version);
        let mut object = Vec::new();
        let target = course.target.unwrap_or_else(|| head.path_and_query());
        object::open(head, target, client, &mut object);
        let (pool, route) = (course.pool, course.route);
        let (object, held) = (Some(object), Vec::new());
        let share = plan.share(peer);
        Self { pool, route, method, version, keep, object, body, held, share, trail: None }
    }

    /// One whose body is all that its pool gets.
    pub(super) fn of_record(
        (pool, route): (PoolId, RouteId),
        plan: &HttpConfig,
        peer: Peer,
        head: &RequestHead,
    ) -> Self {
        let body = Body::new(head.body, &plan.limits);
        let (method, version, keep) = (head.method(), head.version, head.connection.keep_alive);
        let (held, object) = (Vec::new(), None);
        let share = plan.share(peer);
        Self { pool, route, method, version, keep, object, body, held, share, trail: None }
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
