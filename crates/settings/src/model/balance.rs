//! The options of balancing, session affinity, health, the queue and the fallback. They are the same for every kind of
//! worker.

use std::time::Duration;

use super::retry_on::RetryOn;
use crate::options::{Group, Needs, Options, Reload, Setting, options, words};
use crate::values::Key;
use crate::values::Secret;

options! {
    /// Options of a pool beyond the choice of the next free worker for the next request.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Balancing of Any reload Live {
        /// The key that `balance = "hash"` uses.
        hash: Key as key = "source";
        /// Session affinity: binds each client to the worker that served its first request.
        sticky: Option<Sticky> as table, reload(STICKY);
        /// Active and passive health checks of the workers; `"off"`: none.
        health_check: HealthCheck as table_or_off = inner, former(&["health"]);
        /// The fallback response. It replaces a rejection when the pool is over its limits, no worker can serve, a
        /// request waited too long, or an operator turned the fallback on.
        fallback: Option<Fallback> as table, reload(Reload::RestartIf("it names another pool, and there are several shards")), former(&["sorry"]);
        /// Maximum number of concurrent requests of all workers of the pool together.
        concurrent_max("max_concurrent"): Option<u32> as count(1, 1_000_000), reload(ONE_PLACE), former(&["slots_max"]);
        /// Time in which a new worker reaches its full share, for balance methods with weights.
        slow_start: Duration as time_or_off = "off";
        /// How often a request is sent to another worker after a server, or a program that serves HTTP, received it and
        /// did not answer. Applies only to requests that may be repeated.
        retries: Retries as table = inner;
        /// Number of recent decisions that are kept for `roadstead ctl why`.
        trace_max: u32 as count_or_off(1, 1_000_000) = "256", former(&["decisions"]);
        /// The key by which requests share a pool evenly. `None`: first come, first served.
        fair: Option<Key> => fair {};
        /// The key that holds the priority of a request.
        priority: Option<Key> => priority {};
        /// The maximum time that requests wait while no worker is eligible.
        hold_timeout: Duration => hold_timeout {};
    }
}

/// The pool is served by all shards or by one shard. This is fixed at startup.
const ONE_PLACE: Reload =
    Reload::RestartIf("with it one shard alone serves these servers, and there are several shards");

/// As [`ONE_PLACE`], and the limits of shared bindings are those of their bucket.
const STICKY: Reload = Reload::RestartIf(
    "with it one shard alone serves these servers, and there are several shards; or bindings are `shared`",
);

options! {
    /// The options of `queue` that are a part of [`Balancing`].
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct QueueOptions of Any reload Live {
        /// Maximum time that requests wait while workers run but none is eligible, and that bound clients wait for
        /// their server.
        hold_timeout: Duration as time_or_off = "off", former(&["hold"]);
        /// Key for fair queueing. Requests with the same key value form a group, and the groups take turns, so a client
        /// with many requests does not delay others.
        fair: Option<Key> as key;
        /// Key that holds the priority of a request: a digit, 0 is the most urgent. Requests without one have priority
        /// 5.
        priority: Option<Key> as key;
    }
}

fn waiting(group: &Group) -> QueueOptions {
    QueueOptions::fill(group.inner("queue").expect("a queue has defaults"))
}

fn fair(group: &Group) -> Option<Key> {
    waiting(group).fair
}

fn priority(group: &Group) -> Option<Key> {
    waiting(group).priority
}

fn hold_timeout(group: &Group) -> Duration {
    waiting(group).hold_timeout
}

options! {
    /// How often a request that a server received and did not answer is sent to another server, where that is safe. A
    /// request that reached no server does not count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Retries of Any reload Live {
        /// Maximum number of attempts for one request, the first one included; 1: no retry.
        tries: u8 as count(1, 255) = "3";
        /// Share of a retry that each request adds to the retry budget, up to `min_retries`: the maximum share of
        /// retries in all requests over a long time. It prevents retries from multiplying the load of unhealthy
        /// servers.
        budget: u32 as percent = "10%", former(&["share"]);
        /// Size of the retry budget: the number of retries that are allowed at one moment, on each shard. If a server
        /// ends with more requests in flight, the others get 502.
        min_retries: u32 as count(1, 1_000_000) = "20", former(&["reserve"]);
        /// On which failures a request is retried: `connect` (no connection), `reset` (the connection ended before
        /// the response), `timeout` (`response_timeout` passed before the response), `invalid` (not an HTTP response), and
        /// statuses of responses from 400 to 599, like `503` or `502..504`. Without it: `connect`, `reset` and
        /// `invalid`. A request that a server received is retried only if `idempotent` allows it and its body was
        /// complete when it was sent (at most 64 KiB).
        on: RetryOn as names;
    }
}

options! {
    /// Session affinity (`sticky`): how clients are bound to workers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sticky of Any reload Live {
        /// How a client is identified.
        by: KnownBy => known_by {
            /// Key that identifies a client; set either this or `cookie`. `connection` works on every listener except
            /// those with `protocol = "datagrams"`, on Unix sockets too.
            key: Option<Key> as key;
            cookie: Cookie;
        };
        /// Time after the last request of a client until its binding expires. With `cookie`, it requires `value =
        /// "signed"` or `mode = "passive"`.
        lifetime: Duration as days = "1h";
        /// Maximum number of bound clients. About 58 bytes of memory per client are allocated at startup. Above the
        /// limit, the binding that has been idle longest is removed. With `cookie`, it requires `mode = "passive"`.
        entries: u32 as count(1, 10_000_000) = "100000";
        /// Whether a client whose worker is gone is bound to another worker. With `false` its requests are rejected as
        /// `gone`.
        redispatch: bool as switch = "true", former(&["gone"]);
        /// Whether daemons on other machines know the binding of a client, so that each sends it to the same server. It
        /// requires `[cluster]`, and pools with the same name, `lifetime` and servers on all machines.
        shared: bool as switch = "false";
    }
}

/// How a client is identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// A key: a property that its requests have in any case.
    Key(Key),
    /// A cookie that identifies the server of the client.
    Cookie(Cookie),
}

fn known_by(group: &Group) -> KnownBy {
    match group.find("cookie") {
        Some(_) => KnownBy::Cookie(Cookie::fill(group)),
        None => KnownBy::Key(Key::of(group.value("key"))),
    }
}

options! {
    /// A cookie that identifies the server of a client (`sticky.cookie`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cookie of Any reload Live {
        /// Name of the HTTP cookie that identifies the server of a client.
        name("cookie"): String as text;
        /// How the client receives the cookie.
        mode: CookieMode as word = "insert", needs(Needs::Cookie);
        /// How the value of the cookie is made. It never contains an address.
        value: CookieValue as word = "opaque", needs(Needs::Cookie);
        /// Secret from which cookie values are made. Machines that share clients need the same secret. Without it,
        /// clients are bound again after a restart.
        secret: Option<Secret> as secret, needs(Needs::Cookie);
        /// `Path` attribute of an inserted cookie.
        path: String as path = "/", needs(Needs::InsertedCookie);
        /// The `Max-Age` attribute. `None`: until the client ends.
        max_age: Option<Duration> => max_age {
            /// `Max-Age` attribute of the cookie; `off`: the cookie is valid until the browser is closed.
            max_age: Duration as days_or_off = "off", needs(Needs::InsertedCookie);
        };
        /// Whether the cookie has the attribute `HttpOnly`.
        http_only: bool as switch = "true", needs(Needs::InsertedCookie);
        /// Whether the cookie has the attribute `Secure`.
        secure: bool as switch = "false", needs(Needs::InsertedCookie);
        /// `SameSite` attribute of the cookie.
        same_site: SameSite as word = "lax", needs(Needs::InsertedCookie);
    }
}

fn max_age(group: &Group) -> Option<Duration> {
    group.get("max_age").filter(|age: &Duration| !age.is_zero())
}

words! {
    /// How a client receives the cookie.
    pub enum CookieMode {
        /// A cookie is added to replies.
        Insert = "insert",
        /// The value that the server gives to a cookie of this name is replaced.
        Rewrite = "rewrite",
        /// The affinity value and a `~` are put before the server's value, and are removed from requests before the
        /// server receives them.
        Prefix = "prefix",
        /// Nothing is changed. The value that the server sets is stored.
        Passive = "passive",
    }
}

words! {
    /// How the value of a cookie is made.
    pub enum CookieValue {
        /// A digest of the server's name.
        Opaque = "opaque",
        /// The digest and the time, signed: a client cannot forge it, and it expires after `lifetime`.
        Signed = "signed",
    }
}

words! {
    /// The `SameSite` attribute of a cookie.
    pub enum SameSite {
        /// The cookie is sent only with requests from pages of the same site.
        Strict = "strict",
        /// The cookie is also sent when a user follows a link to the site.
        Lax = "lax",
        /// The cookie is always sent. Browsers require `secure` with it.
        None = "none",
    }
}

options! {
    /// Active and passive health checks of the workers (`health_check`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HealthCheck of Any reload Live {
        /// The active health check of workers. `None`: no active check.
        check: Option<Check> => check {
            /// Kind of the active health check, which also tests idle workers.
            check: CheckKind as word = "off";
            all: Check;
        };
        /// Number of consecutive failed requests after which a worker is ejected.
        fails_max("max_fails"): u32 as count_or_off(1, 1_000_000) = "off", former(&["errors"]);
        /// The share of failed requests at which a worker is ejected. `None`: only consecutive failures count.
        fail_rate: Option<FailRate> => fail_rate {
            all: FailRate;
        };
        /// A request that takes longer than this counts as failed.
        unhealthy_latency: Option<Duration> as time, former(&["slow"]);
        /// Response statuses that count as failed, as a range or a single status, like `500..599`. Without it, no
        /// status counts.
        unhealthy_status: Option<(u16, u16)> as name, former(&["failing"]);
        /// How long a worker is ejected the first time. The time doubles if the worker fails again soon after, up to 5
        /// min.
        fail_duration: Duration as time = "10s", former(&["eject"]);
    }
}

fn check(group: &Group) -> Option<Check> {
    (!group.is("check", CheckKind::Off)).then(|| Check::fill(group))
}

fn fail_rate(group: &Group) -> Option<FailRate> {
    group.find("fail_rate").map(|_| FailRate::fill(group))
}

options! {
    /// The share of failed requests at which a worker is ejected (`health_check.fail_rate`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FailRate of Any reload Live {
        /// Share of failed requests within `fail_window` at which a worker is ejected. Without it, only `max_fails`
        /// counts.
        percent("fail_rate"): u32 as percent;
        /// Time window over which `fail_rate` is measured.
        window("fail_window"): Duration as time = "10s";
        /// Minimum number of requests of a worker in the window. `fail_rate` does not apply below it.
        requests_min("fail_min_requests"): u32 as count(1, 1_000_000) = "20";
    }
}

options! {
    /// The active health check (`health_check.check`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Check of Any reload Live {
        /// Time between two checks of a worker. It is at most 5 s while its checks fail.
        interval: Duration as time = "2s", needs(Needs::AnyCheck);
        /// Maximum duration of a check. A check that takes longer has failed.
        timeout: Duration as time = "1s", needs(Needs::AnyCheck);
        /// Number of consecutive successful checks after which a worker that is down serves again.
        rise: u32 as count(1, 1000) = "2", needs(Needs::AnyCheck);
        /// Number of consecutive failed checks after which a worker is down.
        fall: u32 as count(1, 1000) = "3", needs(Needs::AnyCheck);
        /// Whether a new worker serves requests only after its checks have succeeded, also when the daemon starts.
        checked_first: bool as switch = "false", needs(Needs::AnyCheck);
        /// Port of the server for checks, if it differs from the port for requests.
        port: Option<u16> as count(1, 65_535), needs(Needs::AnyCheck);
        /// The action of a check.
        probe: Probe => probe {
            http: HttpProbe;
            /// Line that `check = "line"` sends.
            send: Option<String> as text, needs(Needs::Check("line"));
            /// Prefix of a successful answer to `send`. Without it, any answer is a success.
            expect: Option<String> as text, needs(Needs::Check("line"));
            /// Program and arguments that `check = "program"` runs, with the name of the worker in `ROADSTEAD_WORKER`.
            /// Exit code 0 is a success.
            command: Vec<String> as command, needs(Needs::Check("program"));
            /// User that `command` runs as. Default: `user` of the programs of the pool, or the user of the daemon.
            user: Option<String> as name, needs(Needs::Check("program"));
            /// Group that `command` runs as. Default: the groups of `user`, or those of the programs of the pool.
            group: Option<String> as name, needs(Needs::Check("program"));
        };
    }
}

/// The action of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Opens a connection.
    Tcp,
    /// Sends an HTTP request to a server.
    Http(HttpProbe),
    /// Sends a line and reads a line.
    Line {
        /// The line to send, without a line end.
        send: String,
        /// The prefix of a successful answer.
        expect: String,
    },
    /// Runs a program; exit code 0 is good.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// The user that it runs as. Default: the user of the programs of the pool.
        user: Option<String>,
        /// The group that it runs as. Default: the group of the programs of the pool.
        group: Option<String>,
    },
}

fn probe(group: &Group) -> Probe {
    match CheckKind::of(group.value("check")) {
        CheckKind::Off | CheckKind::Tcp => Probe::Tcp,
        CheckKind::Http => Probe::Http(HttpProbe::fill(group)),
        CheckKind::Line => Probe::Line {
            send: String::of(group.value("send")),
            expect: group.get("expect").unwrap_or_default(),
        },
        CheckKind::Program => Probe::Program {
            command: group.texts("command").to_vec(),
            user: group.get("user"),
            group: group.get("group"),
        },
    }
}

options! {
    /// An HTTP request and the conditions for a successful reply.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HttpProbe of Any reload Live {
        /// Method of the request of `check = "http"`.
        method: String as name = "GET", needs(Needs::Check("http"));
        /// Path of the request of `check = "http"`.
        path: String as path = "/", needs(Needs::Check("http"));
        /// Host name in the request. Default: the address of the server.
        host: Option<String> as name, needs(Needs::Check("http"));
        /// Successful statuses, as a range or a single status.
        status: (u16, u16) as name = "200..399", needs(Needs::Check("http"));
        /// Text that the first 64 KiB of a successful response body must contain.
        body: Option<String> as text, needs(Needs::Check("http"));
    }
}

words! {
    /// The kind of an active health check.
    pub enum CheckKind {
        /// No active check.
        Off = "off",
        /// Succeeds if the server accepts a connection.
        Tcp = "tcp",
        /// Succeeds if the server answers an HTTP/1.1 request.
        Http = "http",
        /// Succeeds if a server or a program answers a line with a line.
        Line = "line",
        /// Runs a program of yours, which decides.
        Program = "program",
    }
}

options! {
    /// The fallback of a pool (`fallback`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Fallback of Any reload Live {
        /// The answer.
        answer: FallbackAnswer => answer {
            /// Text of the answer. `{request_id}`, `{cause}` and `{pool}` are replaced by these values of the request.
            line: Option<String> as text;
            /// File with the answer, read at startup and at each reload; the variables of `line` are replaced. No other
            /// user may be able to change a symbolic link in its path.
            file: Option<String> as name;
            /// Pool that receives the request.
            pool: Option<String> as pool;
            /// URL or path to which HTTP clients are redirected.
            redirect: Option<String> as path, needs(Needs::HttpClients);
        };
        /// The HTTP properties of the answer.
        http: FallbackHttp;
        /// The fallback ends when the requests in the slots and in the queue are at most this part of both together.
        until: u32 as percent = "50%";
        /// How long the condition of `until` must hold before the fallback ends.
        steady: Duration as time_or_zero = "0s";
    }
}

options! {
    /// The HTTP response of a fallback.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FallbackHttp of Any reload Live {
        /// HTTP status of the answer. Default: 503, or 302 with `redirect`.
        status: Option<u16> as count(200, 599), needs(Needs::HttpClients);
        /// `Content-Type` of the answer over HTTP. Default: derived from the extension of `file`.
        content_type("type"): Option<String> as name, needs(Needs::HttpClients);
        /// Value of `Retry-After` over HTTP.
        retry_after: Duration as time_or_off = "10s", needs(Needs::HttpClients);
    }
}

/// The content of a fallback response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackAnswer {
    /// This text.
    Line(String),
    /// The content of this file.
    File(String),
    /// The reply of this pool.
    Pool(String),
    /// A redirect to this location, over HTTP.
    Redirect(String),
}

fn answer(group: &Group) -> FallbackAnswer {
    let text = |name| group.text(name).map(str::to_owned);
    let line = text("line").map(FallbackAnswer::Line);
    let file = || text("file").map(FallbackAnswer::File);
    let redirect = || text("redirect").map(FallbackAnswer::Redirect);
    line.or_else(file)
        .or_else(redirect)
        .unwrap_or_else(|| FallbackAnswer::Pool(String::of(group.value("pool"))))
}
