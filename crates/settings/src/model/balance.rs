//! The options of balancing, session affinity, health, the queue and the fallback. They are the same for every kind of
//! worker.

use std::time::Duration;

use super::retry_on::RetryOn;
use super::statuses::Statuses;
use crate::options::{Group, Options, Reload, Setting, options, words};
use crate::values::Key;
use crate::values::Secret;

options! {
    /// What a pool does beyond giving the next request to the next free worker.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Balancing of Any reload Live {
        /// What `balance = "hash"` goes by.
        hash: Key as key = "source";
        /// Binds each client to the worker that had its first request.
        sticky: Option<Sticky> as table, reload(ONE_PLACE);
        /// When a worker is left out, and how long; `"off"`: never.
        health_check: HealthCheck as table_or_off = inner;
        /// What it answers, in place of a refusal, when it is over its limits, nobody can answer, a request waited
        /// too long, or an operator says so.
        fallback: Option<Fallback> as table, reload(Reload::RestartIf("it names another pool, and there are several shards"));
        /// Maximum number of concurrent requests of all its workers together.
        concurrent_max("max_concurrent"): Option<u32> as count(1, 1_000_000), reload(ONE_PLACE);
        /// How long a new worker takes until it is given its whole share, where the schedule has weights.
        slow_start: Duration as time_or_off = "off";
        /// How often a request that a server or a program that serves HTTP had and did not answer is given to
        /// another, where it may be made again.
        retries: Retries as table = inner;
        /// Decisions that are kept, for `roadstead ctl why`.
        trace_max: u32 as count_or_off(1, 1_000_000) = "256";
        /// Those that have the same share a pool evenly; none: whoever came first.
        fair: Option<Key> => fair {};
        /// Where a request says how urgent it is.
        priority: Option<Key> => priority {};
        /// How long requests wait while no worker is fit.
        hold_timeout: Duration => hold_timeout {};
    }
}

/// Servers are served by all shards or by one, from the start.
const ONE_PLACE: Reload =
    Reload::RestartIf("with it one shard alone serves these servers, and there are several shards");

options! {
    /// The options of `queue` that are a part of [`Balancing`].
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Waiting of Any reload Live {
        /// How long requests wait while workers run but none is fit, and bound clients for their server.
        hold_timeout: Duration as time_or_off = "off";
        /// Those that have this in common take turns: one that asks much does not keep others waiting.
        fair: Option<Key> as key;
        /// Where a request says how urgent it is: a digit, 0 the most, 5 where there is none.
        priority: Option<Key> as key;
    }
}

fn waiting(group: &Group) -> Waiting {
    Waiting::fill(group.inner("queue").expect("a queue has defaults"))
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
    /// How often a request that a server had and did not answer is given to another, where that is safe. One that
    /// reached nobody costs nothing of this.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Retries of Any reload Live {
        /// Times that one request is given to a server; 1: never again.
        tries: u8 as count(1, 255) = "3";
        /// Retries as a part of all requests, in the long run, so that retries cannot multiply the load of unhealthy_status
        /// servers.
        budget: u32 as percent = "10%";
        /// Number of retries that are allowed at once beyond the budget.
        min_retries: u32 as count(1, 1_000_000) = "20";
        /// On which failures a request is retried: `connect` (no connection), `reset` (the connection ended before
        /// the response), `timeout` (`response_timeout` passed before the response), `invalid` (not an HTTP response), and
        /// statuses of responses from 400 to 599, like `503` or `502..504`. Without it: `connect`, `reset` and
        /// `invalid`. A request that a server received is retried only if `idempotent` allows it and its body was
        /// complete when it was sent (at most 64 KiB).
        on: RetryOn as names;
    }
}

options! {
    /// How clients are bound to workers (`sticky`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sticky of Any reload Live {
        /// What a client is known by.
        by: KnownBy => known_by {
            /// What a client is known by; either this or `cookie`. `connection` works on every listener but one of
            /// datagrams, on Unix sockets too.
            key: Option<Key> as key;
            cookie: Cookie;
        };
        /// A client that did not ask for so long is no longer bound; with a cookie it goes with `value = "signed"` or
        /// `mode = "passive"`.
        lifetime: Duration as days = "1h";
        /// Clients bound at once, some 58 bytes each, which are taken at the start; beyond it the one that rested
        /// longest is let go. With a cookie it goes with `mode = "passive"` alone.
        entries: u32 as count(1, 10_000_000) = "100000";
        /// Whether a client whose worker is gone is bound to another worker. With `false` its requests are rejected as
        /// `gone`.
        redispatch: bool as switch = "true";
    }
}

/// What a client is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// Something that its requests hold anyway.
    Key(Key),
    /// A cookie that says which server is its own.
    Cookie(Cookie),
}

fn known_by(group: &Group) -> KnownBy {
    match group.find("cookie") {
        Some(_) => KnownBy::Cookie(Cookie::fill(group)),
        None => KnownBy::Key(Key::of(group.value("key"))),
    }
}

options! {
    /// A cookie that says which server is a client's own (`sticky.cookie`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cookie of Any reload Live {
        /// The name of a cookie of HTTP that says which server is the client's own.
        name("cookie"): String as text;
        /// How the client gets the cookie.
        mode: CookieMode as word = "insert";
        /// What its value is made of; never an address.
        value: CookieValue as word = "opaque";
        /// What values are made with, the same on machines that share clients; without it clients are bound anew
        /// after a restart.
        secret: Option<Secret> as secret;
        /// `Path` of a cookie that is inserted.
        path: String as path = "/";
        /// `Max-Age`; none: until the client ends.
        max_age: Option<Duration> => max_age {
            /// Its `Max-Age`; `off`: the cookie is valid until the browser is closed.
            max_age: Duration as days_or_off = "off";
        };
        /// Whether it is `HttpOnly`.
        http_only: bool as switch = "true";
        /// Whether it is `Secure`.
        secure: bool as switch = "false";
        /// Its `SameSite`.
        same_site: SameSite as word = "lax";
    }
}

fn max_age(group: &Group) -> Option<Duration> {
    group.get("max_age").filter(|age: &Duration| !age.is_zero())
}

words! {
    /// How a client gets the cookie.
    pub enum CookieMode {
        /// One of ours is added to replies.
        Insert = "insert",
        /// The value that the server gives to a cookie of this name is replaced by ours.
        Rewrite = "rewrite",
        /// Ours and a `~` stand before the server's value, and are taken off before it sees them.
        Prefix = "prefix",
        /// Nothing is changed; the value that the server gives is learnt.
        Passive = "passive",
    }
}

words! {
    /// What a cookie's value is made of.
    pub enum CookieValue {
        /// A digest of the server's name.
        Opaque = "opaque",
        /// The digest and the time, signed: it cannot be made up, nor used beyond `lifetime`.
        Signed = "signed",
    }
}

words! {
    /// `SameSite` of a cookie.
    pub enum SameSite {
        /// Sent by pages of this site alone.
        Strict = "strict",
        /// Sent also when somebody follows a link to it.
        Lax = "lax",
        /// Always sent; browsers want `secure` with it.
        None = "none",
    }
}

options! {
    /// What makes a worker unfit (`health_check`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HealthCheck of Any reload Live {
        /// How workers are looked at while nobody asks them; none: not at all.
        check: Option<Check> => check {
            /// How a worker is looked at while nobody asks it.
            check: CheckKind as word = "off";
            all: Check;
        };
        /// Number of requests in a row that fail at a worker until it is left out.
        fails_max("max_fails"): u32 as count_or_off(1, 1_000_000) = "off";
        /// The share of failed requests that takes a worker out; none: only failures in a row count.
        fail_rate: Option<FailRate> => fail_rate {
            all: FailRate;
        };
        /// A request that takes longer counts as failed.
        unhealthy_latency: Option<Duration> as time;
        /// Statuses of replies that count as failed, both ends included.
        unhealthy_status: Option<(u16, u16)> => unhealthy_status {
            /// Statuses of replies that count as failed, as a range or one, like `500..599`; without it none do.
            unhealthy_status: Option<Statuses> as name;
        };
        /// How long a worker is left out the first time. The time doubles if the worker fails again soon after, up to 5 min.
        fail_duration: Duration as time = "10s";
    }
}

fn check(group: &Group) -> Option<Check> {
    (!group.is("check", CheckKind::Off)).then(|| Check::fill(group))
}

fn fail_rate(group: &Group) -> Option<FailRate> {
    group.find("fail_rate").map(|_| FailRate::fill(group))
}

fn unhealthy_status(group: &Group) -> Option<(u16, u16)> {
    group.get("unhealthy_status").map(|Statuses(from, to)| (from, to))
}

options! {
    /// The share of failed requests that takes a worker out (`health_check.fail_rate`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FailRate of Any reload Live {
        /// The share of failed requests over `fail_window` that takes a worker out; without it only `max_fails` counts.
        percent("fail_rate"): u32 as percent;
        /// The time over which `fail_rate` is measured.
        window("fail_window"): Duration as time = "10s";
        /// `fail_rate` does not apply while a worker has had fewer requests in the window.
        requests_min("fail_min_requests"): u32 as count(1, 1_000_000) = "20";
    }
}

options! {
    /// How workers are looked at while nobody asks them (`health_check.check`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Check of Any reload Live {
        /// Time between two checks of a worker; at most 5 s while its checks fail.
        interval: Duration as time = "2s";
        /// A check that takes longer is a bad one.
        timeout: Duration as time = "1s";
        /// Good checks in a row until a worker serves again.
        rise: u32 as count(1, 1000) = "2";
        /// Bad checks in a row until a worker is left out.
        fall: u32 as count(1, 1000) = "3";
        /// Whether a new worker serves nobody before its checks were good.
        checked_first: bool as switch = "false";
        /// Another port of the server, for its checks.
        port: Option<u16> as count(1, 65_535);
        /// What is done.
        probe: Probe => probe {
            http: HttpProbe;
            /// The line that `check = "line"` sends.
            send: Option<String> as text;
            /// How a good answer to it begins; any will do without it.
            expect: Option<String> as text;
            /// What `check = "program"` runs, with the worker's name in `ROADSTEAD_WORKER`; exit code 0 is good.
            command: Vec<String> as command;
            /// The user that `command` runs as; without it `user` of the pool's programs, or the daemon's own.
            user: Option<String> as name;
            /// The group that `command` runs as; without it the groups of `user`, or those of the pool's programs.
            group: Option<String> as name;
        };
    }
}

/// What one check does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Connects.
    Tcp,
    /// Asks a server.
    Http(HttpProbe),
    /// Sends a line and reads another.
    Line {
        /// What it sends, without a line end.
        send: String,
        /// How a good answer begins.
        expect: String,
    },
    /// Runs a program; exit code 0 is good.
    Program {
        /// Its name and arguments.
        command: Vec<String>,
        /// The user it runs as; without it that of the pool's programs.
        user: Option<String>,
        /// The group it runs as; without it that of the pool's programs.
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
    /// A request of HTTP and what a good reply is.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HttpProbe of Any reload Live {
        /// The method of `check = "http"`.
        method: String as name = "GET";
        /// What `check = "http"` asks for.
        path: String as path = "/";
        /// The host it names; without it the server's address.
        host: Option<String> as name;
        /// The statuses that are good, both ends included.
        status: (u16, u16) => status {
            /// The statuses that are good, as a range or one.
            status: Statuses as name = "200..399";
        };
        /// What stands in the first 64 KiB of a good body.
        body: Option<String> as text;
    }
}

fn status(group: &Group) -> (u16, u16) {
    let Statuses(from, to) = Statuses::of(group.value("status"));
    (from, to)
}

words! {
    /// How a worker is looked at, as the word says it.
    pub enum CheckKind {
        /// Not at all.
        Off = "off",
        /// A server takes a connection.
        Tcp = "tcp",
        /// A server answers a request of HTTP/1.1.
        Http = "http",
        /// A server, or a program, answers a line with another.
        Line = "line",
        /// A program of yours says so.
        Program = "program",
    }
}

options! {
    /// The fallback of a pool (`fallback`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Fallback of Any reload Live {
        /// What it answers with.
        answer: FallbackAnswer => answer {
            /// It answers with this. `{request_id}`, `{cause}` and `{pool}` in it stand for these values of the
            /// request.
            line: Option<String> as text;
            /// It answers with what is in this file, read at start, with the same variables. No other user may be
            /// able to change a symbolic link in its path.
            file: Option<String> as name;
            /// It gives the request to this pool.
            pool: Option<String> as pool;
            /// It sends clients of HTTP there.
            redirect: Option<String> as path;
        };
        /// How it says so over HTTP.
        http: FallbackHttp;
        /// The fallback ends when no more than this part of the slots and of the queue is in use.
        until: u32 as percent = "50%";
        /// How long that must hold.
        steady: Duration as time_or_zero = "0s";
    }
}

options! {
    /// The HTTP response of a fallback.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FallbackHttp of Any reload Live {
        /// The status over HTTP; without it 503, and 302 with `redirect`.
        status: Option<u16> as count(200, 599);
        /// What the answer is, over HTTP; without it, as the name of `file` ends.
        content_type("type"): Option<String> as name;
        /// `Retry-After` over HTTP.
        retry_after: Duration as time_or_off = "10s";
    }
}

/// The content of a fallback response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FallbackAnswer {
    /// This.
    Line(String),
    /// What is in this file.
    File(String),
    /// Whatever this pool answers.
    Pool(String),
    /// That the client should ask there, over HTTP.
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
