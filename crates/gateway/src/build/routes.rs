//! Builds routes: names are resolved to pools, secrets and files are read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use exchange::{PoolId, Slice};
use route::{Authenticator, Edits, PathRule, Table};
use settings::{RespondBody, RouteAccess, RouteAction, Secret};

use super::secret_file::read_secret_text;
use crate::error::BuildError;
use frontend::routing::{Action, GuardConfig, RouteConfig, RoutingConfig};

/// The settings of a listener that concern the routing of its requests.
pub(super) struct RoutingSettings {
    pub(super) routes: Vec<settings::Route>,
    pub(super) authenticate: Option<settings::Authenticate>,
    pub(super) request: Edits,
    pub(super) reply: Edits,
    pub(super) allow_upgrade: bool,
}

impl RoutingSettings {
    /// Builds the routing; `None` if all requests go unchanged to the listener's pool.
    pub(super) fn routing(
        self,
        listener: &str,
        pool: Option<PoolId>,
        places: &BTreeMap<String, PoolId>,
    ) -> Result<Option<RoutingConfig>, BuildError> {
        let Self { routes, authenticate, request, reply, allow_upgrade } = self;
        if routes.is_empty() && authenticate.is_none() && request.is_empty() && reply.is_empty() {
            return Ok(None);
        }
        let guard = authenticate.as_ref().map(guard).transpose();
        let guard = guard.map_err(|lacks| refused(listener, &[], lacks))?;
        let common = Common { guard: guard.clone(), request, reply, allow_upgrade, places };
        let (rules, configs): (Vec<_>, Vec<_>) = routes
            .into_iter()
            .enumerate()
            .map(|(place, route)| (route.rule.clone(), common.config(listener, place, route)))
            .unzip();
        let rest = pool.map(|pool| RouteConfig {
            action: Action::Pool { pool, rewrite: None },
            guard: guard.clone(),
            request: common.request.clone(),
            reply: common.reply.clone(),
            allow_upgrade,
            segments: 0,
        });
        let routes: Vec<RouteConfig> = configs.into_iter().collect::<Result<_, _>>()?;
        Ok(Some(RoutingConfig {
            table: Table::new(rules),
            is_guarded: guard.is_some() || routes.iter().any(RouteConfig::is_guard),
            routes,
            rest,
            guard,
            reply: common.reply,
        }))
    }
}

/// The settings that all routes of a listener share.
struct Common<'a> {
    guard: Option<Arc<GuardConfig>>,
    request: Edits,
    reply: Edits,
    allow_upgrade: bool,
    places: &'a BTreeMap<String, PoolId>,
}

impl Common<'_> {
    fn config(
        &self,
        listener: &str,
        place: usize,
        route: settings::Route,
    ) -> Result<RouteConfig, BuildError> {
        let refused = |lacks| refused(listener, &["route", &place.to_string()], lacks);
        let settings::Route { rule, action, request, reply, access, allow_upgrade } = route;
        let joined = |first: &Edits, then: &Edits| {
            let mut joined = first.clone();
            joined.then(then);
            joined
        };
        let reply = joined(&self.reply, &reply);
        let action = match action {
            RouteAction::Pool { pool, rewrite } => {
                let pool = *self.places.get(&pool).ok_or(BuildError::NoPool(pool))?;
                Action::Pool { pool, rewrite }
            }
            RouteAction::Redirect { status, to } => Action::Redirect { status, to },
            RouteAction::Respond { status, body, content_type } => {
                let body = match body {
                    RespondBody::Text(text) => Slice::from(text.as_str()),
                    RespondBody::File(path) => {
                        let bytes = fixed(&path).map_err(|lack| refused(vec![lack]))?;
                        Slice::from(bytes.as_slice())
                    }
                };
                Action::Fixed { status, body, content_type }
            }
        };
        let guard = match access {
            RouteAccess::Inherited => self.guard.clone(),
            RouteAccess::Public => None,
            RouteAccess::Own(authenticate) => Some(guard(&authenticate).map_err(refused)?),
        };
        let segments = match &rule.path {
            Some(PathRule::Below(prefix)) => prefix.iter().filter(|&&byte| byte == b'/').count(),
            Some(PathRule::Exact(_) | PathRule::Pattern(_)) | None => 0,
        };
        let request = joined(&self.request, &request);
        let allow_upgrade = allow_upgrade.unwrap_or(self.allow_upgrade);
        Ok(RouteConfig { action, guard, request, reply, allow_upgrade, segments })
    }
}

/// A file or secret that is not available: the configuration keys that name it, below its listener or route, and the
/// reason.
#[derive(Debug)]
pub(super) struct Lack {
    place: Vec<String>,
    why: String,
}

impl Lack {
    fn at(place: &[&str], why: String) -> Self {
        Self { place: place.iter().map(|&key| key.to_owned()).collect(), why }
    }

    /// Converts this to an error of that listener; `below` are the keys of the route.
    fn of(self, listener: &str, below: &[&str]) -> BuildError {
        let keys = below.iter().map(|&key| key.to_owned());
        let place = keys.chain(self.place).collect();
        BuildError::Route { listener: listener.to_owned(), place, why: self.why }
    }
}

/// Returns the error for the first of the missing files and secrets.
fn refused(listener: &str, below: &[&str], lacks: Vec<Lack>) -> BuildError {
    let first = lacks.into_iter().next();
    first.unwrap_or_else(|| Lack::at(&[], String::new())).of(listener, below)
}

/// Returns an error for everything that the routes of a listener name and that is not available.
pub(super) fn unread(listener: &settings::Listener) -> Vec<BuildError> {
    let (name, http) = (&listener.name, &listener.http);
    let of = |authenticate| guard(authenticate).err().unwrap_or_default();
    let all = http.authenticate.as_ref().map(of).unwrap_or_default();
    let mut errors: Vec<_> = all.into_iter().map(|lack| lack.of(name, &[])).collect();
    for (place, route) in http.routes.iter().enumerate() {
        let mut lacks = match &route.access {
            RouteAccess::Own(authenticate) => of(authenticate),
            RouteAccess::Inherited | RouteAccess::Public => Vec::new(),
        };
        if let RouteAction::Respond { body: RespondBody::File(path), .. } = &route.action {
            lacks.extend(fixed(path).err());
        }
        let below = ["route", &place.to_string()];
        errors.extend(lacks.into_iter().map(|lack| lack.of(name, &below)));
    }
    errors
}

/// Returns the content of the file of a fixed response.
fn fixed(path: &str) -> Result<Vec<u8>, Lack> {
    let lack = |error| {
        Lack::at(&["respond", "file"], format!("the answer `{path}` cannot be read: {error}"))
    };
    paths::read(Path::new(path)).map(|(bytes, _)| bytes).map_err(lack)
}

/// Reads the secrets. An error message does not contain the secret.
fn guard(authenticate: &settings::Authenticate) -> Result<Arc<GuardConfig>, Vec<Lack>> {
    let settings::Authenticate { bearer, basic, realm, forward } = authenticate;
    let mut lacks = Vec::new();
    let mut guard = Authenticator::new(realm).map_err(|why| {
        vec![Lack::at(&["authenticate", "realm"], format!("the realm `{realm}` {why}"))]
    })?;
    for secret in bearer {
        let lack = |why| Lack::at(&["authenticate", "bearer", &called(secret)], why);
        lacks.extend(add_tokens(secret, &mut guard).err().map(lack));
    }
    if let Some(secret) = basic {
        let lack = |why| Lack::at(&["authenticate", "basic"], why);
        lacks.extend(add_users(secret, &mut guard).err().map(lack));
    }
    if !lacks.is_empty() {
        return Err(lacks);
    }
    let mut challenges = Vec::new();
    guard.write_challenges(&mut challenges);
    Ok(Arc::new(GuardConfig { guard, forwards: *forward, challenges }))
}

fn add_tokens(secret: &Secret, guard: &mut Authenticator) -> Result<(), String> {
    let (text, place) = read(secret)?;
    let mut lines = lines(&text).peekable();
    if lines.peek().is_none() {
        return Err(format!("{place} holds no token"));
    }
    for (number, token) in lines {
        guard.token(token).map_err(|why| format!("{place}: the token in line {number} {why}"))?;
    }
    Ok(())
}

fn add_users(secret: &Secret, guard: &mut Authenticator) -> Result<(), String> {
    let (text, place) = read(secret)?;
    for (number, line) in lines(&text) {
        guard.user(line).map_err(|why| format!("{place}: line {number} {why}"))?;
    }
    Ok(())
}

/// Returns the location of a secret as it is written in the configuration.
fn called(secret: &Secret) -> String {
    match secret {
        Secret::Environment(name) => format!("env:{name}"),
        Secret::File(path) => format!("file:{}", path.display()),
    }
}

/// Returns a secret, and its location for messages.
fn read(secret: &Secret) -> Result<(String, String), String> {
    let place = format!("`{}`", called(secret));
    let text = match secret {
        Secret::Environment(name) => std::env::var(name).map_err(|error| error.to_string()),
        Secret::File(path) => read_secret_text(path).map_err(|error| error.to_string()),
    };
    match text {
        Ok(text) => Ok((text, place)),
        Err(error) => Err(format!("{place}: {error}")),
    }
}

/// Returns the lines with their numbers from 1, without those that are empty or begin with `#`.
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
        let lacks = guard(&authenticate).expect_err("it is too short");
        let [Lack { why, place }] = &lacks[..] else { panic!("one is: {lacks:?}") };
        assert!(why.contains("tokens`: the token in line 3 has fewer"), "{why}");
        assert!(!why.contains("hush"), "{why}");
        assert!(place.concat().ends_with("tokens"), "{place:?}");
    }
}
