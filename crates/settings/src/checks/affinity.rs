//! Rules between keys, cookies and HTTP answers, and the pools that contain them.

use std::ops::Range;

use crate::fault::Fault;
use crate::model::{CookieMode, CookieValue, Protocol, SameSite};
use crate::options::WorkerKind;
use crate::options::{Group, Value};
use crate::walk::Section;

/// Options that require a cookie.
const OF_COOKIES: &[&str] =
    &["mode", "value", "secret", "path", "max_age", "http_only", "secure", "same_site"];
/// Options that require an inserted cookie.
const OF_INSERTED: &[&str] = &["path", "max_age", "http_only", "secure", "same_site"];
/// Options of a fallback that apply to HTTP clients only.
const OF_HTTP: &[&str] = &["redirect", "status", "type", "retry_after"];

/// What the workers of a pool receive from HTTP clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gets {
    /// The HTTP requests.
    Messages,
    /// One JSON object per request, which contains its head. From other clients they receive frames.
    Objects,
    /// Records that are parsed from the requests.
    Records,
    /// Nothing: no HTTP listener uses the pool.
    Nothing,
}

pub(super) fn check(
    pool: &Section,
    listeners: &[&Section],
    pools: &[&Section],
    faults: &mut Vec<Fault>,
) {
    let Some(worker) = pool.worker else { return };
    let asked = |over_http| asked_by(pool, listeners, pools, over_http);
    let gets = match worker {
        _ if worker == WorkerKind::Servers || super::http::serves(pool) => Gets::Messages,
        _ if !asked(true) => Gets::Nothing,
        WorkerKind::Program => Gets::Objects,
        _ => Gets::Records,
    };
    key(&pool.group, "hash", gets, faults);
    if let Some(queue) = pool.group.inner("queue") {
        key(queue, "fair", gets, faults);
        key(queue, "priority", gets, faults);
    }
    if let Some(sticky) = pool.group.inner("sticky") {
        key(sticky, "key", gets, faults);
        known_by(sticky, pool.group.key("sticky").unwrap_or(0..0), gets, faults);
        cookie(sticky, gets, faults);
    }
    if let Some(fallback) = pool.group.inner("fallback") {
        for name in OF_HTTP.iter().filter(|_| gets == Gets::Nothing) {
            if let Some(place) = fallback.key(name) {
                faults.push(
                    Fault::at(place, format!("`{name}` requires HTTP clients"))
                        .expected(NOBODY_ASKS)
                        .suggestion("remove it"),
                );
            }
        }
        if let (Some(place), true) =
            (fallback.key("redirect"), gets != Gets::Nothing && asked(false))
        {
            faults.push(
                Fault::at(place, "`redirect` requires HTTP clients")
                    .expected("a listener with another protocol also uses this pool")
                    .suggestion("write `line` or `file`, or use a separate pool for HTTP"),
            );
        }
        head(fallback, faults);
    }
}

const NOBODY_ASKS: &str = "no HTTP listener uses this pool";

/// Whether a listener sends requests to this pool: an HTTP listener if `over_http`, otherwise a listener of another
/// protocol. It may use the pool directly, or through a pool whose fallback or `then` is this pool.
fn asked_by(pool: &Section, listeners: &[&Section], pools: &[&Section], over_http: bool) -> bool {
    let speaks = |listener: &&&Section| match listener.group.get::<Protocol>("protocol") {
        Some(protocol) => (protocol == Protocol::Http) == over_http,
        // An invalid protocol has another error.
        None => over_http,
    };
    let named = |group: &Group, name: &str| match group.value(name) {
        Some(Value::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let of_listener = |listener: &&Section| {
        let groups = super::routes::with_routes(listener);
        groups.filter_map(|group| named(group, "pool")).collect::<Vec<_>>()
    };
    let mut reached: Vec<String> = listeners.iter().filter(speaks).flat_map(of_listener).collect();
    let mut at = 0;
    while let Some(name) = reached.get(at).cloned() {
        at += 1;
        let Some(next) = pools.iter().find(|pool| pool.name == name) else { continue };
        let fallback = match next.group.value("fallback") {
            Some(Value::Group(fallback)) => named(fallback, "pool"),
            _ => None,
        };
        for more in [fallback, named(&next.group, "then")].into_iter().flatten() {
            if !reached.contains(&more) {
                reached.push(more);
            }
        }
    }
    reached.contains(&pool.name)
}

/// A key must exist in the requests that the pool receives.
fn key(group: &Group, name: &str, gets: Gets, faults: &mut Vec<Fault>) {
    let (Some(Value::Key(key)), Some(place)) = (group.value(name), group.place(name)) else {
        return;
    };
    let fits = match gets {
        Gets::Messages => key.is_http() != Some(false),
        Gets::Objects => true,
        Gets::Records | Gets::Nothing => key.is_http() != Some(true),
    };
    if fits {
        return;
    }
    let suggestion = if gets == Gets::Messages {
        "write \"header:NAME\", \"cookie:NAME\", \"path\", \"query:NAME\", \"source\" or \"connection\""
    } else {
        "write \"word:N\", \"field:NAME\", \"member:NAME\", \"line\", \"source\" or \"connection\""
    };
    let message = format!("`{key}` does not occur in the requests of this pool");
    let fault = Fault::at(place, message);
    faults.push(match gets {
        Gets::Messages => fault.expected("they are HTTP requests").suggestion(suggestion),
        Gets::Nothing => fault.expected(NOBODY_ASKS).suggestion(suggestion),
        Gets::Objects | Gets::Records => {
            fault.expected("HTTP requests are converted to records here").suggestion(suggestion)
        }
    });
}

fn known_by(sticky: &Group, place: Range<usize>, gets: Gets, faults: &mut Vec<Fault>) {
    match (sticky.key("key"), sticky.key("cookie")) {
        (None, None) => faults.push(
            Fault::at(place, "`sticky` needs something to recognise a client by")
                .expected("expected `key` or `cookie`")
                .suggestion("add `key = \"source\"`"),
        ),
        (Some(one), Some(other)) => {
            let second = if one.start > other.start { one } else { other };
            let message = "`sticky` has both `key` and `cookie`";
            faults.push(Fault::at(second, message).suggestion("keep one of them"));
        }
        (None, Some(cookie)) if gets == Gets::Nothing => faults.push(
            Fault::at(cookie, "`cookie` requires HTTP clients")
                .expected(NOBODY_ASKS)
                .suggestion("write a `key`"),
        ),
        (Some(_), None) => {
            for name in OF_COOKIES {
                if let Some(place) = sticky.key(name) {
                    faults.push(
                        Fault::at(place, format!("`{name}` requires `cookie`"))
                            .suggestion("add `cookie = \"worker\"`, or remove it"),
                    );
                }
            }
        }
        (None, Some(_)) => {}
    }
}

fn cookie(sticky: &Group, gets: Gets, faults: &mut Vec<Fault>) {
    let Some((name, place)) = sticky.given_text("cookie") else {
        return;
    };
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !name.bytes().all(token) {
        let message = format!("`{name}` is not a valid cookie name");
        faults.push(Fault::at(place, message).suggestion("use letters, digits, `-` and `_`"));
    }
    if gets == Gets::Objects
        && sticky.is("mode", CookieMode::Prefix)
        && let Some(place) = sticky.place("mode")
    {
        faults.push(
            Fault::at(place, "`prefix` requires workers that speak HTTP")
                .expected(
                    "these programs receive JSON objects, and the cookie is not removed from them",
                )
                .suggestion("write \"insert\" or \"rewrite\""),
        );
    }
    let inserts = sticky.is("mode", CookieMode::Insert);
    for name in OF_INSERTED.iter().filter(|_| !inserts) {
        if let Some(place) = sticky.key(name) {
            let message = format!("`{name}` has no effect: the server sets the cookie");
            faults.push(
                Fault::at(place, message).suggestion("write `mode = \"insert\"`, or remove it"),
            );
        }
    }
    let signed = sticky.is("value", CookieValue::Signed);
    let passive = sticky.is("mode", CookieMode::Passive);
    without_a_table(sticky, signed, passive, faults);
    if let (true, None, Some(place)) = (signed, sticky.key("secret"), sticky.place("value")) {
        faults.push(
            Fault::at(place, "a signed cookie needs a `secret`")
                .suggestion("add `secret = \"env:COOKIE_SECRET\"`"),
        );
    }
    let anywhere = sticky.is("same_site", SameSite::None);
    if let (true, Some(Value::Switch(false)), Some(place)) =
        (anywhere, sticky.value("secure"), sticky.place("same_site"))
    {
        faults.push(
            Fault::at(place, "browsers reject `same_site = \"none\"` without `secure`")
                .suggestion("add `secure = true`"),
        );
    }
    let odd = |byte: u8| byte == b';' || !byte.is_ascii_graphic();
    if let Some((path, place)) = sticky.given_text("path")
        && (!path.starts_with('/') || path.bytes().any(odd))
    {
        let message = format!("`{path}` is not a valid cookie path");
        faults.push(Fault::at(place, message).suggestion("begin it with `/`"));
    }
}

/// Only a table and a signed cookie contain the time of the last request of a client.
fn without_a_table(sticky: &Group, signed: bool, passive: bool, faults: &mut Vec<Fault>) {
    if let (Some(place), false) = (sticky.key("lifetime"), signed || passive) {
        faults.push(
            Fault::at(place, "`lifetime` has no effect: this cookie does not contain its age")
                .expected("`lifetime` requires `value = \"signed\"` or `mode = \"passive\"`")
                .suggestion("write `value = \"signed\"` and a `secret`, or use `max_age` instead"),
        );
    }
    if let (Some(place), false) = (sticky.key("entries"), passive) {
        faults.push(
            Fault::at(
                place,
                "`entries` has no effect: the cookie contains the binding, so there is no table",
            )
            .expected("`entries` requires `key` or `mode = \"passive\"`")
            .suggestion("remove it"),
        );
    }
}

/// Text that is written into a head must not end the line, a redirect requires a redirect status, and an answer with a
/// text requires a status that allows one.
fn head(fallback: &Group, faults: &mut Vec<Fault>) {
    for name in ["redirect", "type"] {
        let Some((text, place)) = fallback.given_text(name) else {
            continue;
        };
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            let message = format!("`{}` is not allowed in a header", text.escape_debug());
            faults.push(
                Fault::at(place, message).suggestion("write ASCII without control characters"),
            );
        }
    }
    let (Some(number), Some(place)) = (fallback.number("status"), fallback.place("status")) else {
        return;
    };
    if fallback.key("redirect").is_some() && !matches!(number, 301 | 302 | 303 | 307 | 308) {
        let message = format!("{number} is not a redirect status");
        faults.push(Fault::at(place, message).suggestion("write 302 or 307, or remove it"));
        return;
    }
    let has_body = ["line", "file"].into_iter().any(|name| fallback.key(name).is_some());
    if has_body && matches!(number, 204 | 205 | 304) {
        let message = format!("an answer with status {number} has no body");
        faults.push(Fault::at(place, message).suggestion("write another `status`"));
    }
}
