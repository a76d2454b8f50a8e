//! The table of routes: every path, its method and the role that it requires.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use gateway::Access;

use crate::cluster::Cluster;
use crate::reload::Reload;
use crate::role::Role;
use crate::shared_page::SharedPages;
use crate::{balance, cluster, pages, reload};

/// The state that handlers use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) reload: Option<Reload>,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) shared: Arc<SharedPages>,
}

impl FromRef<App> for Access {
    fn from_ref(app: &App) -> Self {
        app.access.clone()
    }
}

impl FromRef<App> for Arc<SharedPages> {
    fn from_ref(app: &App) -> Self {
        Self::clone(&app.shared)
    }
}

impl FromRef<App> for Option<Reload> {
    fn from_ref(app: &App) -> Self {
        app.reload.clone()
    }
}

impl FromRef<App> for Option<Cluster> {
    fn from_ref(app: &App) -> Self {
        app.cluster.clone()
    }
}

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) role: Role,
    /// Its description on the index page.
    about: &'static str,
    handler: fn() -> MethodRouter<App>,
}

const fn view(
    path: &'static str,
    about: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Route {
    Route { method: Method::GET, path, role: Role::Viewer, about, handler }
}

const fn inspect(
    path: &'static str,
    about: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Route {
    Route { method: Method::GET, path, role: Role::Admin, about, handler }
}

const fn change(
    path: &'static str,
    about: &'static str,
    handler: fn() -> MethodRouter<App>,
) -> Route {
    Route { method: Method::POST, path, role: Role::Admin, about, handler }
}

/// Every route. The data of a client's request and its routing (`why`) are only for administrators.
pub(crate) const ROUTES: &[Route] = &[
    view("/", "this page", || get(index)),
    view("/metrics", "metrics in Prometheus text format", || get(pages::metrics)),
    view("/status", "listeners, pools and workers as JSON", || get(pages::status)),
    view("/health", "ok, or 503 while draining", || get(pages::health)),
    inspect("/why/{id}", "why a request was handled as it was", || get(balance::why)),
    inspect("/pools/{pool}/why", "recent decisions of a pool", || get(balance::lately)),
    change("/ask/{pool}", "send one request to a pool", || post(pages::ask)),
    inspect("/reload", "the effect of a reload", || get(reload::preview)),
    change("/reload", "reload the configuration file", || post(reload::apply)),
    inspect("/cluster", "shared bindings and other machines as JSON", || get(cluster::status)),
    inspect("/cluster/check", "bindings that differ from other machines", || get(cluster::check)),
    change("/recycle/{pool}", "replace the workers of a pool", || post(pages::recycle)),
    change("/pools/{pool}/fallback", "switch the fallback `on` or `off`", || {
        post(balance::fallback)
    }),
    change(
        "/pools/{pool}/workers/{worker}/{verb}",
        "`enable`, `disable`, `drain` or `weight` a worker",
        || post(balance::worker),
    ),
];

/// Returns the role that a request requires. A request that is not in the table requires the highest role.
pub(crate) fn role(method: &Method, path: &str) -> Role {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let found = ROUTES.iter().find(|route| route.method == *method && route.path == path);
    found.map_or(Role::Admin, |route| route.role)
}

/// Returns all routes with their handlers, without the checks before them.
pub(crate) fn router(app: App) -> Router {
    let empty = Router::new();
    let all = ROUTES.iter().fold(empty, |router, it| router.route(it.path, (it.handler)()));
    let shared = Arc::clone(&app.shared);
    all.with_state(app).layer(from_fn_with_state(shared, invalidate_after_change))
}

/// Makes pages for anonymous clients outdated before a command is answered, so that they show what it changed.
async fn invalidate_after_change(
    State(shared): State<Arc<SharedPages>>,
    request: Request,
    next: Next,
) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.run(request).await;
    if is_change && !response.status().is_client_error() {
        shared.invalidate();
    }
    response
}

/// Returns the index page.
async fn index() -> String {
    let mut text = "roadstead\n\n".to_owned();
    for route in ROUTES {
        // The `Display` of `Method` ignores the width.
        let method = route.method.as_str();
        text.push_str(&format!("{method:<5}{:<40}{}\n", route.path, route.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_a_column_for_each_part_of_a_route() {
        let future = std::pin::pin!(index());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(text) = future.poll(&mut context) else { panic!("it waits") };
        assert!(text.contains("\nGET  /metrics "), "{text}");
        assert!(text.contains("\nPOST /ask/{pool} "), "{text}");
        for (line, route) in text.lines().skip(2).zip(ROUTES) {
            let about = line.find(route.about);
            assert!(about == Some(45) || route.path.len() > 39, "{line}");
        }
    }
}
