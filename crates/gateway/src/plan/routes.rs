//! Routes made ready: names resolved to places, secrets and files read.

use std::collections::BTreeMap;
use std::sync::Arc;

use exchange::Slice;
use route::{Edits, Guard, PathRule, Rewrite, Table, Template};
use settings::{FixedBody, RouteAccess, RouteAction, Secret};

use super::PlanError;

/// Which way requests of a listener go.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(crate) table: Table,
    /// By their places in the table.
    pub(crate) routes: Vec<RoutePlan>,
    /// For requests that no route is for.
    pub(crate) rest: Option<RoutePlan>,
    /// Who is told that there is no route.
    pub(crate) guard: Option<Arc<GuardPlan>>,
}

/// What becomes of the requests of a route.
#[derive(Debug)]
pub(crate) struct RoutePlan {
    pub(crate) action: Action,
    pub(crate) guard: Option<Arc<GuardPlan>>,
    pub(crate) request: Edits,
    pub(crate) reply: Edits,
    /// Segments of its prefix; what lies behind them is the rest of a path.
    pub(crate) segments: usize,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Action {
    Pool { place: usize, rewrite: Option<Rewrite> },
    Redirect { status: u16, to: Template, lines: Vec<u8> },
    Fixed { status: u16, body: Slice, content_type: String, lines: Vec<u8> },
}

/// Who is let through.
#[derive(Debug)]
pub(crate) struct GuardPlan {
    pub(crate) guard: Guard,
    /// The server gets the credentials too.
    pub(crate) forwards: bool,
    /// What the others are told.
    pub(crate) challenges: Vec<u8>,
}

/// What a listener says of the way of its requests.
pub(super) struct Ways {
    pub(super) routes: Vec<settings::Route>,
    pub(super) authenticate: Option<settings::Authenticate>,
    pub(super) request: Edits,
    pub(super) reply: Edits,
}

impl Ways {
    /// None when all requests go to the listener's pool as they come.
    pub(super) fn routing(
        self,
        listener: &str,
        pool: Option<usize>,
        places: &BTreeMap<String, usize>,
    ) -> Result<Option<Routing>, PlanError> {
        let Self { routes, authenticate, request, reply } = self;
        if routes.is_empty() && authenticate.is_none() && request.is_empty() && reply.is_empty() {
            return Ok(None);
        }
        let refused = |why: String| PlanError::Route { listener: listener.to_owned(), why };
        let guard = authenticate.map(guard).transpose().map_err(refused)?;
        let common = Common { guard: guard.clone(), request, reply, places };
        let (rules, plans): (Vec<_>, Vec<_>) = routes
            .into_iter()
            .map(|route| (route.rule.clone(), common.plan(listener, route)))
            .unzip();
        let rest = pool.map(|place| RoutePlan {
            action: Action::Pool { place, rewrite: None },
            guard: guard.clone(),
            request: common.request.clone(),
            reply: common.reply.clone(),
            segments: 0,
        });
        Ok(Some(Routing {
            table: Table::new(rules),
            routes: plans.into_iter().collect::<Result<_, _>>()?,
            rest,
            guard,
        }))
    }
}

/// What all routes of a listener have in common.
struct Common<'a> {
    guard: Option<Arc<GuardPlan>>,
    request: Edits,
    reply: Edits,
    places: &'a BTreeMap<String, usize>,
}

impl Common<'_> {
    fn plan(&self, listener: &str, route: settings::Route) -> Result<RoutePlan, PlanError> {
        let refused = |why: String| PlanError::Route { listener: listener.to_owned(), why };
        let settings::Route { rule, action, request, reply, access } = route;
        let joined = |first: &Edits, then: &Edits| {
            let mut joined = first.clone();
            joined.then(then);
            joined
        };
        let reply = joined(&self.reply, &reply);
        let action = match action {
            RouteAction::Pool { pool, rewrite } => {
                let place = *self.places.get(&pool).ok_or(PlanError::NoPool(pool))?;
                Action::Pool { place, rewrite }
            }
            RouteAction::Redirect { status, to } => {
                Action::Redirect { status, to, lines: reply.lines() }
            }
            RouteAction::Fixed { status, body, content_type } => {
                let body = match body {
                    FixedBody::Text(text) => Slice::from(text.as_str()),
                    FixedBody::File(path) => {
                        let bytes = std::fs::read(&path).map_err(|error| {
                            refused(format!("the answer `{path}` cannot be read: {error}"))
                        })?;
                        Slice::from(bytes.as_slice())
                    }
                };
                Action::Fixed { status, body, content_type, lines: reply.lines() }
            }
        };
        let guard = match access {
            RouteAccess::Inherited => self.guard.clone(),
            RouteAccess::Public => None,
            RouteAccess::Own(authenticate) => Some(guard(authenticate).map_err(refused)?),
        };
        let segments = match &rule.path {
            Some(PathRule::Below(prefix)) => prefix.iter().filter(|&&byte| byte == b'/').count(),
            Some(PathRule::Exact(_) | PathRule::Pattern(_)) | None => 0,
        };
        Ok(RoutePlan { action, guard, request: joined(&self.request, &request), reply, segments })
    }
}

/// Reads the secrets. What is wrong with one is said without it.
fn guard(authenticate: settings::Authenticate) -> Result<Arc<GuardPlan>, String> {
    let settings::Authenticate { bearer, basic, realm, forward } = authenticate;
    let mut guard = Guard::new(&realm).map_err(|why| format!("the realm `{realm}` {why}"))?;
    for secret in &bearer {
        let (text, place) = read(secret)?;
        let mut lines = lines(&text).peekable();
        if lines.peek().is_none() {
            return Err(format!("{place} holds no token"));
        }
        for (number, token) in lines {
            guard
                .token(token)
                .map_err(|why| format!("{place}: the token in line {number} {why}"))?;
        }
    }
    if let Some(secret) = &basic {
        let (text, place) = read(secret)?;
        for (number, line) in lines(&text) {
            guard.user(line).map_err(|why| format!("{place}: line {number} {why}"))?;
        }
    }
    let mut challenges = Vec::new();
    guard.write_challenges(&mut challenges);
    Ok(Arc::new(GuardPlan { guard, forwards: forward, challenges }))
}

/// A secret, and how its place is called.
fn read(secret: &Secret) -> Result<(String, String), String> {
    match secret {
        Secret::Environment(name) => {
            let text = std::env::var(name).map_err(|error| format!("`env:{name}`: {error}"))?;
            Ok((text, format!("`env:{name}`")))
        }
        Secret::File(path) => {
            let place = format!("`file:{}`", path.display());
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
            Ok((text, place))
        }
    }
}

/// Lines with their numbers from 1, without those that are empty or begin with `#`.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let meant = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    (1..).zip(text.lines()).filter(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_cannot_be_taken_is_named_by_its_place_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "# of the office\n\nhush\n").expect("a file");
        let authenticate = settings::Authenticate {
            bearer: vec![Secret::File(path)],
            basic: None,
            realm: "x".into(),
            forward: false,
        };
        let why = guard(authenticate).expect_err("it is too short");
        assert!(why.contains("tokens`: the token in line 3 has fewer"), "{why}");
        assert!(!why.contains("hush"), "{why}");
    }
}
