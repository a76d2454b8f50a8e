//! Rules for the routes of a listener.

use super::pool_names;
use crate::fault::{Fault, Trust, reject};
use crate::model::routing;
use crate::model::{Configuration, Listener, Protocol};
use crate::options::{Group, Needs, Setting};
use crate::remarks::Remark;
use crate::walk::Section;

/// The maximum number of routes of one listener.
const ROUTES_MAX: usize = 10_000;

/// Returns the options of a listener, then those of each of its routes.
pub(super) fn with_routes(listener: &Section) -> impl Iterator<Item = &Group> {
    std::iter::once(&listener.group).chain(listener.group.groups("route"))
}

/// Routes must name existing pools, and all their options must be valid.
pub(super) fn check(listener: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let group = &listener.group;
    let title = format!("`[listener.{}]`", listener.name);
    if group.find("pool").is_none() && group.find("route").is_none() {
        faults.push(
            Fault::at(listener.place.clone(), format!("{title} has no `pool`"))
                .expected("`pool` is required")
                .suggestion("add `pool = \"NAME\"`")
                .trust(Trust::Absent),
        );
    }
    if !matches!(group.get("protocol"), None | Some(Protocol::Http)) {
        for (option, place) in group.needing(Listener::OPTIONS, Needs::HttpListener) {
            reject! { faults;
                Some(place) => format!("`{option}` requires an HTTP listener, and {title} is not one"),
                    help "write `protocol = \"http\"`, or remove it";
            }
        }
        return;
    }
    via(group, faults);
    let routes = with_routes(listener).count() - 1;
    reject! { faults;
        group.key("route"), if routes > ROUTES_MAX
            => format!("{title} has {routes} routes, which is more than {ROUTES_MAX}"),
            help "combine hosts with the same target in one route";
    }
    for route in with_routes(listener).skip(1) {
        pool_names::check(route, pools, faults);
    }
    // The routes are parsed again when the model is filled. Here they are only checked.
    routing::routes(group, faults);
    routing::authenticate(group, faults);
    for option in ["request_headers", "response_headers"] {
        routing::edits(group, option, faults);
    }
}

/// The name in `Via` must be one token.
fn via(group: &Group, faults: &mut Vec<Fault>) {
    let Some((name, place)) = group.given_text("via") else { return };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(&byte);
    let is_named = name.bytes().all(allowed) && (!name.contains([':', '[', ']']) || is_host(name));
    reject! { faults;
        Some(place), if !is_named
            => format!("`via` = \"{}\" is not a valid name", name.escape_default()),
            expected "expected a word, a host with or without a port, or \"off\"",
            help "write a name such as \"edge-1\"";
    }
}

/// Whether the text is `host:port`, or an IPv6 address in brackets with or without a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port),
        _ => (text, ""),
    };
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    (is_address || !host.is_empty() && !host.contains([':', '[', ']']))
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.len() <= 5
}

/// Returns a remark for each route that no request can reach.
pub(super) fn shadowed(configuration: &Configuration) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for listener in &configuration.listeners {
        let rules = listener.http.routes.iter().map(|route| route.rule.clone()).collect();
        for (late, early) in route::Table::new(rules).shadowed() {
            let path = ["listener", &listener.name, "route", &late.to_string()];
            remarks.push(Remark {
                path: path.map(str::to_owned).to_vec(),
                message: format!(
                    "route {} of `[listener.{}]` can never match, because route {} matches all its \
                     requests; move it before that route, or remove it",
                    late + 1,
                    listener.name,
                    early + 1
                ),
            });
        }
    }
    remarks
}
