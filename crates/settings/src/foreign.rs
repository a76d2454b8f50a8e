// tidy: table
//! Names of options in HAProxy, nginx, Envoy and Caddy: their names here, or that the options do not exist. `nearest`
//! handles typing errors.

/// The place of an option in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Listener,
    Pool,
    Route,
    Server,
    Queue,
    PerAddress,
    Other,
}

impl Scope {
    /// Returns the scope of a table with this title.
    pub(crate) fn of(title: &str) -> Self {
        match title {
            "`route`" => Self::Route,
            "`servers`" => Self::Server,
            "`queue`" => Self::Queue,
            "`per_address`" => Self::PerAddress,
            title if title.starts_with("`[listener.") => Self::Listener,
            title if title.starts_with("`[pool.") => Self::Pool,
            _ => Self::Other,
        }
    }
}

struct Advice {
    scope: Scope,
    names: &'static [&'static str],
    advice: &'static str,
}

macro_rules! advice {
    ($($scope:ident: $($name:literal)+ => $advice:expr;)+) => {
        &[$(Advice { scope: Scope::$scope, names: &[$($name),+], advice: $advice }),+]
    };
}

macro_rules! words {
    ($($option:ident: $($word:literal)+ => $advice:expr;)+) => {
        &[$((stringify!($option), &[$($word),+], $advice)),+]
    };
}

const NO_TLS: &str = "TLS is not supported: terminate it in a proxy in front of this listener, and name its address in \
                      `trusted`";
const TIMEOUTS: &str = "the timeouts of a listener are `request_read_timeout`, `idle_timeout` (between requests), \
                        `send_timeout` (a client that does not read) and, with `http`, `tunnel_timeout`";
const POOL_TIMEOUTS: &str = "the timeouts of a pool are `response_timeout`, `queue = { timeout = \"5s\" }` and, of \
                             servers, `connect_timeout`, `read_timeout` and `request_timeout`";
const PER_ADDRESS: &str =
    "`per_address = { requests = N }` limits the requests of one client address per second";
const CONNECTIONS: &str = "`connections_max` limits a listener, and `per_address = { connections = N }` one client address";
const CONCURRENCY: &str = "concurrent requests are limited by `max_concurrent`: in the pool for all servers together, in \
                           `[pool.NAME.upstream]` for each server, and in the table of one server";
const SCHEDULES: &str = "it is called `balance`: \"round-robin\", \"least-requests\", \"power-of-two\", \"random\", \
                         \"hash\" or \"first\"";
const NO_REGEX: &str = "regular expressions are not supported: use `prefix`, `path`, or `pattern`, in which `*` matches any \
                        characters except slashes and `**` any characters";

const OPTIONS: &[Advice] = advice! {
    Listener: "tls" "ssl" "https" "cert" "certificate" "key" "tls_cert" "ssl_certificate" => NO_TLS;
    Listener: "timeout" "timeouts" "timeout_client" "client_timeout" "read_timeout" "request_timeout"
        "keepalive_timeout" "client_body_timeout" "client_header_timeout" => TIMEOUTS;
    Listener: "maxconn" "max_conn" "max_conns" "max_connections" "worker_connections" "limit_conn" => CONNECTIONS;
    Listener: "rate" "rate_limit" "limit_req" "requests_per" "requests_per_second" "max_requests" => PER_ADDRESS;
    Listener: "bind" "address" "port" => "it is called `listen`";
    Listener: "mode" => "it is called `protocol`";
    Listener: "backend" "default_backend" "use_backend" "upstream" "proxy_pass" "reverse_proxy"
        => "the pool that answers is named by `pool`, or by routes";
    Listener: "location" "locations" "handle" "acl" "rules"
        => "they are called `route`: `[[listener.NAME.route]]` with `prefix`, `path` or `pattern`";
    Listener: "client_max_body_size" "max_body_size" "max_body" => "it is called `body_max`";
    Listener: "gzip" "compression" "encode" => "compression is not supported";
    Pool: "tls" "ssl" "https" "verify" "sni" => "TLS to servers is not supported";
    Pool: "timeout" "timeouts" "timeout_server" "server_timeout" "queue_timeout" "proxy_read_timeout"
        "proxy_connect_timeout" => POOL_TIMEOUTS;
    Pool: "balancing" "lb_policy" "load_balancing" "algorithm" "strategy" "leastconn" "least_conn" "ip_hash"
        "roundrobin" "round_robin" => SCHEDULES;
    Pool: "maxconn" "max_conn" "max_conns" "max_connections" "connections_max" "max_requests" "concurrency"
        => CONCURRENCY;
    Pool: "requests_per" "requests_per_second" "rate" "rate_limit"
        => "pools have no rate limit: `per_address = { requests = N }` of a listener limits the requests of one client address per second";
    Pool: "max_fails" "fail_timeout" "outlier_detection" "passive_health_check"
        => "it is called `health_check`: `health_check = { max_fails = N, fail_duration = \"10s\" }`";
    Pool: "healthcheck" "httpchk" "option_httpchk"
        => "it is called `health_check`: `health_check = { check = \"http\", path = \"/\" }`";
    Pool: "upstreams" "server" "backends" "hosts" => "it is called `servers`";
    Pool: "error_page" "sorry_server" => "it is called `fallback`";
    Pool: "stick" "stick_table" "persistence" "affinity" "session_affinity" => "it is called `sticky`";
    Server: "maxconn" "max_conns" "max_connections" => "it is called `max_concurrent`";
    Server: "host" "url" "listen" => "it is called `address`";
    Server: "check" => "health checks belong to the pool: `health_check = { check = \"http\" }`";
    Server: "tls" "ssl" "verify" => "TLS to servers is not supported";
    Queue: "max_wait" => "it is called `timeout`";
    Queue: "max" "size" "limit" => "it is called `max_requests`";
    PerAddress: "requests_per" "requests_per_second" "rate" "rps"
        => "it is called `requests`, per second; `requests_burst` is the size of a burst";
    PerAddress: "maxconn" "max_connections" => "it is called `connections`";
    Route: "regex" "regexp" "match" "path_regex" "path_regexp" "location" => NO_REGEX;
    Route: "timeout" "response_timeout"
        => "routes have no timeout: `response_timeout` belongs to the pool, `request_read_timeout` to the listener";
    Route: "backend" "upstream" "proxy_pass" => "it is called `pool`";
    Route: "return" "status" => "it is called `respond`: `respond = { status = 404 }`";
    Route: "rate" "rate_limit" "requests_per"
        => "routes have no rate limit: use `per_address = { requests = N }` of the listener";
};

/// Options that were removed: the table, the option, and what to do instead.
const REMOVED: &[(&str, &str, &str)] = &[
    ("listener", "reuse_address", "remove it: addresses are always reused"),
    (
        "workers",
        "preset",
        "write `min`, `max`, `spare` and `grow_above`; see docs/design/elastic.md",
    ),
    ("queue", "priority_step", "remove it: one level of priority is worth 1s of waiting"),
    ("health_check", "eject_max", "remove it: a worker is ejected for at most 5m"),
];

/// Returns what to do instead of an option that was removed, in the table of this title.
pub(crate) fn removed(title: &str, name: &str) -> Option<&'static str> {
    let title = title.trim_matches(['`', '[', ']']);
    let table = title.split('.').next().unwrap_or(title);
    let found = REMOVED.iter().find(|(of, option, _)| *of == table && *option == name);
    found.map(|(_, _, advice)| *advice)
}

/// Returns advice for an option that has another name here, or does not exist.
pub(crate) fn option(scope: Scope, written: &str) -> Option<&'static str> {
    let written = written.to_ascii_lowercase().replace('-', "_");
    let fits = |advice: &&Advice| advice.scope == scope && advice.names.contains(&&*written);
    OPTIONS.iter().find(fits).map(|advice| advice.advice)
}

/// Returns the option that an advice names as the equivalent, if there is one. This option is then not reported as
/// missing.
pub(crate) fn meant(advice: &'static str) -> Option<&'static str> {
    advice.strip_prefix("it is called `")?.split('`').next()
}

/// Words in other servers, by option.
const WORDS: &[(&str, &[&str], &str)] = words! {
    forwarded: "nothing" "none" "no" => "write \"off\"";
    unbuffer: "no" "none" => "write \"off\"";
    handshake: "none" "no" => "write \"off\"";
    exit_message: "none" "no" => "write \"off\"";
    idempotent: "none" "no" => "write \"off\"";
    protocol: "https" "tls" "ssl" "http2" "h2" "h3" "http3" "http/2" "quic"
        => "TLS and HTTP/2 are not supported: write \"http\", and terminate them in a proxy in front of this listener";
    protocol: "tcp" "stream" => "raw TCP proxying is not supported: write \"raw\" for requests without a framing";
    protocol: "udp" => "write \"datagrams\"";
    protocol: "websocket" "ws" "wss" => "write \"http\": upgrades are passed through";
    protocol: "mcp" "json-rpc" => "write \"jsonrpc\"";
    protocol: "lsp" => "write \"content-length\"";
    balance: "leastconn" "least-conn" "least-connections" "least-request" "least-loaded" => "write \"least-requests\"";
    balance: "least-outstanding" => "write \"least-requests\"";
    balance: "two-choices" "power-of-two-choices" "p2c" => "write \"power-of-two\"";
    balance: "weighted" "weighted-round-robin" "static-rr" "wrr" => "write \"round-robin\", which respects weights";
    balance: "source" "ip-hash" "uri" "ring-hash" "maglev" "consistent-hash"
        => "write \"hash\", and `hash` for its key, like \"source\" or \"path\"";
};

/// Returns advice for a word that has another name here, or does not exist.
pub(crate) fn word(option: &str, written: &str) -> Option<&'static str> {
    let written = written.to_ascii_lowercase().replace('_', "-");
    let found = WORDS.iter().find(|(of, words, _)| *of == option && words.contains(&&*written));
    found.map(|(_, _, advice)| *advice)
}

/// Whether a path of a route is certainly a regular expression.
pub(crate) fn is_regex(path: &str) -> bool {
    path.starts_with(['^', '~'])
        || path.len() > 1 && path.ends_with('$')
        || [".*", ".+", "(?", "[^", "[0-9", "[a-z", "[A-Z", "\\d", "\\w", "\\."]
            .iter()
            .any(|part| path.contains(part))
}

/// The advice for a regular expression.
pub(crate) const INSTEAD_OF_REGEX: &str = "write a `prefix`, or a `pattern` in which `*` matches any characters except slashes and `**` any characters";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{self, Kind};
    use crate::table::{self, SECTIONS};

    #[test]
    fn nothing_that_exists_is_called_otherwise() {
        let options_of = |scope| match scope {
            Scope::Listener => table::section("listener").map(|it| it.options),
            Scope::Pool => table::section("pool").map(|it| it.options),
            _ => None,
        };
        for Advice { scope, names, .. } in OPTIONS {
            for name in *names {
                let known = options_of(*scope).and_then(|all| options::find(all, name));
                // Options of one kind of pool are excluded.
                let of_all = known.is_some_and(|known| known.of == options::WorkerKind::Any);
                assert!(!of_all, "{name} is an option of {scope:?}");
                let again =
                    OPTIONS.iter().filter(|it| it.scope == *scope && it.names.contains(name));
                assert_eq!(again.count(), 1, "{name} is there twice for {scope:?}");
            }
        }
        let called = OPTIONS.iter().filter_map(|it| Some((it.scope, meant(it.advice)?)));
        for (scope, name) in called {
            let known = options_of(scope).is_none_or(|all| options::find(all, name).is_some());
            assert!(known, "{name} is no option of {scope:?}");
        }
        let words = |option: &'static str| {
            let all = SECTIONS.iter().flat_map(|section| section.options);
            let kinds = all.filter(move |it| it.name == option).map(|it| it.kind);
            kinds.filter_map(|kind| if let Kind::Word(words) = kind { Some(words) } else { None })
        };
        for (option, names, _) in WORDS {
            assert!(words(option).count() > 0, "{option}");
            for name in *names {
                let known = words(option).flatten().any(|word| word.name == *name);
                assert!(!known, "{name} is a word of {option}");
            }
        }
    }

    #[test]
    fn a_path_is_taken_for_a_regular_expression_only_if_it_surely_is_one() {
        for path in ["^/api/", "~ /x", "/api/.*", "/a/(?P<x>y)", "/x/[0-9]+", "/a\\.php", "/x$"] {
            assert!(is_regex(path), "{path}");
        }
        for path in
            ["/", "/api", "/a.b", "/a(1)", "/$metadata", "/a*", "/a/**", "/files/*.html", "/[id]"]
        {
            assert!(!is_regex(path), "{path}");
        }
    }
}
