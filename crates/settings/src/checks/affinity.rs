//! Rules between keys, cookies and HTTP answers, and the pools that contain them.

use std::ops::Range;

use crate::fault::{Fault, reject};
use crate::model::{CookieMode, CookieValue, Fallback, Protocol, SameSite, Sticky};
use crate::options::{Group, Needs, Setting, Value, WorkerKind};
use crate::walk::Section;

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
        for (name, place) in fallback.needing(Fallback::OPTIONS, Needs::HttpClients) {
            reject! { faults;
                Some(place), if gets == Gets::Nothing => format!("`{name}` requires HTTP clients"),
                    expected NOBODY_ASKS,
                    help "remove it";
            }
        }
        reject! { faults;
            fallback.key("redirect"), if gets != Gets::Nothing && asked(false)
                => "`redirect` requires HTTP clients",
                expected "a listener with another protocol also uses this pool",
                help "write `line` or `file`, or use a separate pool for HTTP";
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
    let named = |group: &Group, name: &str| group.text(name).map(str::to_owned);
    let of_listener = |listener: &&Section| {
        let groups = super::routes::with_routes(listener);
        groups.filter_map(|group| named(group, "pool")).collect::<Vec<_>>()
    };
    let mut reached: Vec<String> = listeners.iter().filter(speaks).flat_map(of_listener).collect();
    let mut at = 0;
    while let Some(name) = reached.get(at).cloned() {
        at += 1;
        let Some(next) = pools.iter().find(|pool| pool.name == name) else { continue };
        let fallback = next.group.inner("fallback").and_then(|fallback| named(fallback, "pool"));
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
    let (expected, suggestion) = match gets {
        Gets::Messages => (
            "they are HTTP requests",
            "write \"header:NAME\", \"cookie:NAME\", \"path\", \"query:NAME\", \"source\" or \"connection\"",
        ),
        Gets::Nothing => (NOBODY_ASKS, OF_RECORDS),
        Gets::Objects | Gets::Records => {
            ("HTTP requests are converted to records here", OF_RECORDS)
        }
    };
    reject! { faults;
        Some(place), if !fits => format!("`{key}` does not occur in the requests of this pool"),
            expected expected,
            help suggestion;
    }
}

const OF_RECORDS: &str =
    "write \"word:N\", \"field:NAME\", \"member:NAME\", \"line\", \"source\" or \"connection\"";

fn known_by(sticky: &Group, place: Range<usize>, gets: Gets, faults: &mut Vec<Fault>) {
    let (key, cookie) = (sticky.key("key"), sticky.key("cookie"));
    let second = key
        .clone()
        .zip(cookie.clone())
        .map(|(one, other)| if one.start > other.start { one } else { other });
    let only_key = key.is_some() && cookie.is_none();
    reject! { faults;
        Some(place), if key.is_none() && cookie.is_none()
            => "`sticky` needs something to recognise a client by",
            expected "expected `key` or `cookie`",
            help "add `key = \"source\"`";
        second => "`sticky` has both `key` and `cookie`", help "keep one of them";
        cookie, if key.is_none() && gets == Gets::Nothing
            => "`cookie` requires HTTP clients",
            expected NOBODY_ASKS,
            help "write a `key`";
    }
    for needs in [Needs::Cookie, Needs::InsertedCookie].into_iter().filter(|_| only_key) {
        for (name, place) in sticky.needing(Sticky::OPTIONS, needs) {
            reject! { faults;
                Some(place) => format!("`{name}` requires `cookie`"),
                    help "add `cookie = \"worker\"`, or remove it";
            }
        }
    }
}

fn cookie(sticky: &Group, gets: Gets, faults: &mut Vec<Fault>) {
    let Some((name, place)) = sticky.given_text("cookie") else { return };
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let mode = |mode: CookieMode| sticky.is("mode", mode);
    reject! { faults;
        Some(place), if !name.bytes().all(token) => format!("`{name}` is not a valid cookie name"),
            help "use letters, digits, `-` and `_`";
        sticky.place("mode"), if gets == Gets::Objects && mode(CookieMode::Prefix)
            => "`prefix` requires workers that speak HTTP",
            expected "these programs receive JSON objects, and the cookie is not removed from them",
            help "write \"insert\" or \"rewrite\"";
    }
    for (name, place) in sticky.needing(Sticky::OPTIONS, Needs::InsertedCookie) {
        reject! { faults;
            Some(place), if !mode(CookieMode::Insert)
                => format!("`{name}` has no effect: the server sets the cookie"),
                help "write `mode = \"insert\"`, or remove it";
        }
    }
    let (signed, passive) = (sticky.is("value", CookieValue::Signed), mode(CookieMode::Passive));
    // Only a table and a signed cookie contain the time of the last request of a client.
    reject! { faults;
        sticky.key("lifetime"), if !signed && !passive
            => "`lifetime` has no effect: this cookie does not contain its age",
            expected "`lifetime` requires `value = \"signed\"` or `mode = \"passive\"`",
            help "write `value = \"signed\"` and a `secret`, or use `max_age` instead";
        sticky.key("entries"), if !passive
            => "`entries` has no effect: the cookie contains the binding, so there is no table",
            expected "`entries` requires `key` or `mode = \"passive\"`",
            help "remove it";
        sticky.place("value"), if signed && sticky.key("secret").is_none()
            => "a signed cookie needs a `secret`",
            help "add `secret = \"env:COOKIE_SECRET\"`";
        sticky.place("same_site"), if sticky.is("same_site", SameSite::None) && sticky.is("secure", false)
            => "browsers reject `same_site = \"none\"` without `secure`",
            help "add `secure = true`";
    }
    let odd = |byte: u8| byte == b';' || !byte.is_ascii_graphic();
    if let Some((path, place)) = sticky.given_text("path") {
        reject! { faults;
            Some(place), if !path.starts_with('/') || path.bytes().any(odd)
                => format!("`{path}` is not a valid cookie path"),
                help "begin it with `/`";
        }
    }
}

/// Text that is written into a head must not end the line, a redirect requires a redirect status, and an answer with a
/// text requires a status that allows one.
fn head(fallback: &Group, faults: &mut Vec<Fault>) {
    for name in ["redirect", "type"] {
        let Some((text, place)) = fallback.given_text(name) else { continue };
        let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        reject! { faults;
            Some(place), if !is_plain
                => format!("`{}` is not allowed in a header", text.escape_debug()),
                help "write ASCII without control characters";
        }
    }
    let Some(number) = fallback.number("status") else { return };
    let redirects = fallback.key("redirect").is_some();
    let is_wrong = redirects && !matches!(number, 301 | 302 | 303 | 307 | 308);
    let has_body = fallback.key("line").is_some() || fallback.key("file").is_some();
    reject! { faults;
        fallback.place("status"), if is_wrong => format!("{number} is not a redirect status"),
            help "write 302 or 307, or remove it";
        fallback.place("status"), if !is_wrong && has_body && matches!(number, 204 | 205 | 304)
            => format!("an answer with status {number} has no body"),
            help "write another `status`";
    }
}
