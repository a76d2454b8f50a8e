//! Which way a request goes: to a pool, or to an answer of the route itself.
//!
//! What it is: the step between a head that was read and a pool that is asked. What it knows: the
//! routes of a listener and one head. What it must never know: a stream, a pool's state.

use exchange::PoolId;
use std::sync::Arc;

use fields::{Value, known};
use route::{Asked, Edits, Filling, Path, PathFault, host_name};
use wire::http1::RequestHead;

mod config;

pub use config::{Action, GuardConfig, RouteConfig, RoutingConfig};

/// Room for paths, targets and lines, kept from one request to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    path: Vec<u8>,
    /// What the server is asked for, where that is not what the client asked for.
    target: Vec<u8>,
    lines: Vec<u8>,
}

impl Scratch {
    /// What the server is asked for, to be taken; empty: what the client asked for.
    pub(crate) const fn target_mut(&mut self) -> &mut Vec<u8> {
        &mut self.target
    }

    /// Lines of the head of an answer.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }
}

/// Which way a request goes.
#[derive(Debug)]
pub enum Way<'a> {
    /// To this pool; the scratch may have a target.
    Pool { pool: PoolId, route: RouteId, plan: &'a RouteConfig },
    /// It is answered with this and the lines in the scratch.
    Answer { status: u16, content_type: &'a str, body: &'a [u8], route: RouteId },
    /// Its path could be understood in more than one way.
    Unclear(PathFault, RouteId),
    /// It is not let through; the scratch has what it is told.
    Unauthorized(RouteId),
    /// There is no route for it.
    Nowhere,
}

/// The place of a route, for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteId(u32);

impl RouteId {
    /// That of the listener's pool itself, and of requests that no route was found for.
    pub const REST: Self = Self(u32::MAX);
}

impl RoutingConfig {
    /// The way of a request.
    pub fn way(&self, head: &RequestHead, scratch: &mut Scratch) -> Way<'_> {
        // Nothing of the request before is left. Each field is named, so that one which is added is not
        // forgotten.
        let Scratch { path: buffer, target, lines } = scratch;
        buffer.clear();
        target.clear();
        lines.clear();
        let raw = head.path();
        // Without routes there is nothing that a spelling could pass by.
        let path = if self.table.is_empty() || raw == b"*" {
            None
        } else {
            match Path::read(raw, buffer) {
                Ok(path) if self.is_guarded && path.has_encoded_escape() => {
                    return Way::Unclear(PathFault::Twice, RouteId::REST);
                }
                Ok(path) => Some(path),
                Err(fault) => return Way::Unclear(fault, RouteId::REST),
            }
        };
        let (host, fields) = (head.host(), &head.fields);
        let plain = path.as_ref().map(Path::plain);
        let asked = Asked { host, method: head.method_bytes(), path: plain, fields };
        let found = self.table.find(&asked);
        let found = self.stricter(found, &asked).or(found);
        let plan = found.map(|place| &self.routes[place]).or(self.rest.as_ref());
        let id = found.and_then(|place| u32::try_from(place).ok());
        let route = id.map_or(RouteId::REST, RouteId);
        let guard = plan.map_or(&self.guard, |plan| &plan.guard);
        if let Some(guard) = guard
            && !guard.admits(head)
        {
            lines.extend_from_slice(&guard.challenges);
            return Way::Unauthorized(route);
        }
        let Some(plan) = plan else { return Way::Nowhere };
        let filling = Filling {
            host: host_name(host),
            path: path.as_ref().map_or(raw, Path::bytes),
            rest: path.as_ref().map_or(b"", |path| path.behind(plan.segments)),
            query: head.query(),
        };
        match &plan.action {
            Action::Pool { pool, rewrite } => {
                match (&path, rewrite) {
                    (Some(path), Some(rewrite)) => {
                        if let Err(fault) = rewrite.write(path, &filling, target) {
                            return Way::Unclear(fault, route);
                        }
                    }
                    (Some(path), None) if path.is_changed() => {
                        target.extend_from_slice(path.bytes());
                        for part in filling.query.into_iter().flat_map(|query| [b"?", query]) {
                            target.extend_from_slice(part);
                        }
                    }
                    _ => {}
                }
                Way::Pool { pool: *pool, route, plan }
            }
            Action::Redirect { status, to } => {
                let start = lines.len();
                lines.extend_from_slice(b"Location: ");
                if let Err(fault) = to.write(&filling, lines) {
                    lines.truncate(start);
                    return Way::Unclear(fault, route);
                }
                lines.extend_from_slice(b"\r\n");
                Way::Answer { status: *status, content_type: "", body: b"", route }
            }
            Action::Fixed { status, body, content_type } => {
                Way::Answer { status: *status, content_type, body, route }
            }
        }
    }

    /// An earlier route that keeps requests away from what some servers take this path for, where the route
    /// that was found does not ask for credentials of its own.
    fn stricter(&self, found: Option<usize>, asked: &Asked<'_>) -> Option<usize> {
        if !self.is_guarded {
            return None;
        }
        let plan = found.map(|place| &self.routes[place]);
        let common = self.guard.as_ref();
        let is_common =
            |guard: &Arc<GuardConfig>| common.is_some_and(|common| Arc::ptr_eq(guard, common));
        if plan.is_some_and(|plan| {
            plan.rejects() || plan.guard.as_ref().is_some_and(|guard| !is_common(guard))
        }) {
            return None;
        }
        let is_open = plan.is_some_and(|plan| plan.guard.is_none());
        let wanted = |place: usize| {
            let plan = &self.routes[place];
            plan.rejects() || plan.guard.as_ref().is_some_and(|guard| is_open || !is_common(guard))
        };
        self.table.find_loosely(asked, found.unwrap_or(usize::MAX), wanted)
    }

    /// What is changed in replies to requests of a route.
    pub fn reply(&self, route: RouteId) -> &Edits {
        self.plan(route).map_or(&self.reply, |plan| &plan.reply)
    }

    /// What was said of a route.
    pub fn plan(&self, route: RouteId) -> Option<&RouteConfig> {
        match route {
            RouteId::REST => self.rest.as_ref(),
            RouteId(place) => self.routes.get(place as usize),
        }
    }
}

impl GuardConfig {
    fn admits(&self, head: &RequestHead) -> bool {
        let given = head.fields.get(&known::AUTHORIZATION).and_then(Value::bytes);
        // Of two, another reader might take the other.
        given.is_some_and(|given| {
            head.fields.is_unique(&known::AUTHORIZATION) && self.guard.admits(given)
        })
    }
}

impl RouteConfig {
    /// Changes the head of a request as it goes to the server.
    pub fn change(&self, head: &mut RequestHead) {
        if self.guard.as_ref().is_some_and(|guard| !guard.forwards) {
            head.fields.remove(&known::AUTHORIZATION);
        }
        if self.request.change_host() {
            head.keep_host();
        }
        self.request.apply(&mut head.fields);
    }
}
