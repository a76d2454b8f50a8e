//! Routing of a request: to a pool, or to a response of the route itself.
//!
//! What it is: the step from a parsed head to a pool. What it depends on: the routes of a listener and one head. What
//! it must never depend on: a stream, the state of a pool.

use exchange::PoolId;
use std::sync::Arc;

use fields::{Value, known};
use route::{Edits, Path, PathFault, RouteRequest, TemplateValues, host_name};
use wire::http1::RequestHead;

mod config;

pub use config::{Action, GuardConfig, RouteConfig, RoutingConfig};

/// Buffers for paths, targets and header lines, reused for the next request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    path: Vec<u8>,
    /// The rewritten target; empty: that of the client.
    target: Vec<u8>,
    lines: Vec<u8>,
}

impl Scratch {
    /// The rewritten target, to be taken; empty: that of the client.
    pub(crate) const fn target_mut(&mut self) -> &mut Vec<u8> {
        &mut self.target
    }

    /// Header lines of a response.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }
}

/// The destination of a request.
#[derive(Debug)]
pub(crate) enum RouteDecision<'a> {
    /// This pool. The scratch memory may contain a rewritten target.
    Pool { pool: PoolId, route: RouteId, config: &'a RouteConfig },
    /// This response, with the header lines in the scratch memory.
    Answer { status: u16, content_type: &'a str, body: &'a [u8], route: RouteId },
    /// None: the path is ambiguous.
    Unclear(PathFault, RouteId),
    /// None: the credentials are missing. The challenges are in the scratch memory.
    Unauthorized(RouteId),
    /// None: there is no route.
    Nowhere,
}

/// The index of a route, which is needed for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteId(u32);

impl RouteId {
    /// The default route, and requests without a route.
    pub(crate) const REST: Self = Self(u32::MAX);
}

impl RoutingConfig {
    /// Finds the destination of a request.
    pub(crate) fn way(&self, head: &RequestHead, scratch: &mut Scratch) -> RouteDecision<'_> {
        // All fields are cleared. Each is named, so that a new one cannot be forgotten.
        let Scratch { path: buffer, target, lines } = scratch;
        buffer.clear();
        target.clear();
        lines.clear();
        let raw = head.path();
        // Without routes no spelling can evade one.
        let path = if self.table.is_empty() || raw == b"*" {
            None
        } else {
            match Path::read(raw, buffer) {
                Ok(path) if self.is_guarded && path.has_encoded_escape() => {
                    return RouteDecision::Unclear(PathFault::Twice, RouteId::REST);
                }
                Ok(path) => Some(path),
                Err(fault) => return RouteDecision::Unclear(fault, RouteId::REST),
            }
        };
        let (host, fields) = (head.host(), &head.fields);
        let plain = path.as_ref().map(Path::plain);
        let asked = RouteRequest { host, method: head.method_bytes(), path: plain, fields };
        let found = self.table.find(&asked);
        let found = self.stricter(found, &asked).or(found);
        let config = found.map(|place| &self.routes[place]).or(self.rest.as_ref());
        let id = found.and_then(|place| u32::try_from(place).ok());
        let route = id.map_or(RouteId::REST, RouteId);
        let guard = config.map_or(&self.guard, |config| &config.guard);
        if let Some(guard) = guard
            && !guard.admits(head)
        {
            lines.extend_from_slice(&guard.challenges);
            return RouteDecision::Unauthorized(route);
        }
        let Some(config) = config else { return RouteDecision::Nowhere };
        let filling = TemplateValues {
            host: host_name(host),
            path: path.as_ref().map_or(raw, Path::bytes),
            rest: path.as_ref().map_or(b"", |path| path.after_segments(config.segments)),
            query: head.query(),
        };
        match &config.action {
            Action::Pool { pool, rewrite } => {
                match (&path, rewrite) {
                    (Some(path), Some(rewrite)) => {
                        if let Err(fault) = rewrite.write(path, &filling, target) {
                            return RouteDecision::Unclear(fault, route);
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
                RouteDecision::Pool { pool: *pool, route, config }
            }
            Action::Redirect { status, to } => {
                let start = lines.len();
                lines.extend_from_slice(b"Location: ");
                if let Err(fault) = to.write(&filling, lines) {
                    lines.truncate(start);
                    return RouteDecision::Unclear(fault, route);
                }
                lines.extend_from_slice(b"\r\n");
                RouteDecision::Answer { status: *status, content_type: "", body: b"", route }
            }
            Action::Fixed { status, body, content_type } => {
                RouteDecision::Answer { status: *status, content_type, body, route }
            }
        }
    }

    /// An earlier route that restricts access to another path that some servers treat as this one. It applies if the
    /// route that was found requires no credentials.
    fn stricter(&self, found: Option<usize>, asked: &RouteRequest<'_>) -> Option<usize> {
        if !self.is_guarded {
            return None;
        }
        let config = found.map(|place| &self.routes[place]);
        let common = self.guard.as_ref();
        let is_common =
            |guard: &Arc<GuardConfig>| common.is_some_and(|common| Arc::ptr_eq(guard, common));
        if config.is_some_and(|config| {
            config.rejects() || config.guard.as_ref().is_some_and(|guard| !is_common(guard))
        }) {
            return None;
        }
        let is_open = config.is_some_and(|config| config.guard.is_none());
        let wanted = |place: usize| {
            let config = &self.routes[place];
            config.rejects()
                || config.guard.as_ref().is_some_and(|guard| is_open || !is_common(guard))
        };
        self.table.find_lenient(asked, found.unwrap_or(usize::MAX), wanted)
    }

    /// Changes of the headers of replies to requests of a route.
    pub(crate) fn reply(&self, route: RouteId) -> &Edits {
        self.config(route).map_or(&self.reply, |config| &config.reply)
    }

    /// The configuration of a route.
    pub(crate) fn config(&self, route: RouteId) -> Option<&RouteConfig> {
        match route {
            RouteId::REST => self.rest.as_ref(),
            RouteId(place) => self.routes.get(place as usize),
        }
    }
}

impl GuardConfig {
    fn admits(&self, head: &RequestHead) -> bool {
        let given = head.fields.get(&known::AUTHORIZATION).and_then(Value::bytes);
        // If there are two, another parser might use the other one.
        given.is_some_and(|given| {
            head.fields.is_unique(&known::AUTHORIZATION) && self.guard.admits(given)
        })
    }
}

impl RouteConfig {
    /// Applies the changes of the route to the head of a request.
    pub(crate) fn change(&self, head: &mut RequestHead) {
        if self.guard.as_ref().is_some_and(|guard| !guard.forwards) {
            head.fields.remove(&known::AUTHORIZATION);
        }
        if self.request.changes_host() {
            head.store_host();
        }
        self.request.apply(&mut head.fields);
    }
}
