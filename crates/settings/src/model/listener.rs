//! Listeners, as they are configured.

use std::time::Duration;

use super::addresses::Addresses;
use super::program::Framing;
use super::route::{Authenticate, Edited, Route, RouteRows};
use super::routing;
use crate::options::kinds::GIB;
use crate::options::{Group, Reload, Setting, options, words};
use crate::values::{Address, Network};

options! {
    /// One listener (`[listener.NAME]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Listener of Any reload Live {
        /// Its name.
        name: String => name {};
        /// Where it listens.
        listen: Address as address = required, reload(Reload::Restart);
        /// The pool that answers; with routes, those requests that no route is for.
        pool: Option<String> as pool;
        /// What its clients speak.
        protocol: Protocol as word = "lines", reload(Reload::Restart);
        /// How replies are distinguished from rejections.
        reply: ReplyStyle as word = "auto";
        /// What the end of a client's bytes means.
        half_close: HalfClose => half_close {
            /// What the end of a client's bytes means; on `http` it is `left` where nothing is said.
            half_close: HalfClose as word = "keep";
        };
        /// What becomes of a last line, or other frame, whose end mark did not come.
        last_line: LastLine as word = "refuse";
        /// Connections at once. One more takes the place of the idle connection that has been silent longest, and is
        /// refused where none is idle.
        connections_max: u32 as count(1, 1_000_000) = "10000";
        /// Bytes of a request, without what marks its ends; 16MiB with `jsonrpc` and `content-length` unless it is
        /// given.
        frame_max: usize as size(1, GIB) = "64KiB", reload(Reload::RestartIf("`protocol` is `datagrams`"));
        /// What becomes of a client that sends a longer one.
        frame_over: FrameOver as word = "skip";
        /// Requests of one client at once; at the limit it is not read.
        in_flight_max: u32 as count(1, 1_000_000) = "64";
        /// Bytes of a client's replies that wait for their turn.
        reply_held_max: usize as size(1, GIB) = "1MiB";
        /// Bytes of output that wait for a client to read them; over it the client is cut. 16MiB with `jsonrpc` and
        /// `content-length` unless it is given.
        send_max: usize as size(1, GIB) = "4MiB", reload(Reload::RestartIf("it becomes the smallest of all listeners, and there are several shards"));
        /// Maximum time without a request.
        idle_timeout: Duration => idle_timeout {
            /// A client that sends nothing and waits for no reply is closed after this time. 75s with `http` unless it is
            /// given.
            idle_timeout: Duration as time_or_off = "10m";
        };
        /// A client that has not begun its first request this long after it connected is closed.
        first_request_timeout: Duration as time_or_off = "10s";
        /// Maximum time to receive a whole request, from its first byte.
        request_read_timeout: Duration as time_or_off = "10s";
        /// A client that reads none of its output for this time is closed.
        send_timeout: Duration as time_or_off = "30s";
        /// Bytes a second that a client must take while output waits for it, measured over each `send_timeout`.
        send_rate_min: usize as size_or_off(1, GIB) = "512B";
        /// What only a listener of HTTP has.
        http: HttpListener;
        /// Whom it takes.
        addresses: Addresses;
        /// Whether its requests are in the access log, if there is one.
        access_log: bool as switch = "true";
        /// Connections that the kernel holds until they are accepted.
        backlog: u32 as count(1, 65_535) = "4096", reload(Reload::Restart);
        /// TCP keepalive: after this time without traffic the kernel probes the client, and the connection is closed if
        /// there is no answer within as long again.
        tcp_keepalive_interval: Duration as time_or_off = "2m", reload(Reload::Restart);
    }
}

fn name(group: &Group) -> String {
    group.name.clone()
}

/// Browsers hold connections open that they no longer need.
const HTTP_IDLE_TIMEOUT: Duration = Duration::from_secs(75);

fn idle_timeout(group: &Group) -> Duration {
    let is_http = group.is("protocol", Protocol::Http) && group.key("idle_timeout").is_none();
    if is_http { HTTP_IDLE_TIMEOUT } else { Duration::of(group.value("idle_timeout")) }
}

/// A browser that closes has left; whoever speaks messages may have said all.
fn half_close(group: &Group) -> HalfClose {
    let is_http = group.is("protocol", Protocol::Http) && group.key("half_close").is_none();
    if is_http { HalfClose::Left } else { group.get("half_close").unwrap_or(HalfClose::Keep) }
}

options! {
    /// What only a listener of HTTP has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HttpListener of Any reload Live {
        /// With `http`: bytes of the head of a request.
        head_max: usize as size(256, 65_535) = "16KiB";
        /// With `http`: bytes of the body of a request.
        body_max: usize as size(1, 64 * GIB) = "1MiB";
        /// With `http`: bytes of all bodies together that are taken whole before a program gets them; over it 503.
        /// One client address that is not `trusted` takes at most half of what others leave, but always one body.
        bodies_max: usize as size(1, 64 * GIB) = "64MiB";
        /// With `http`: bytes a second that a body must bring, measured over each `request_read_timeout`.
        body_rate_min: usize as size_or_off(1, GIB) = "240B";
        /// With `http`: a tunnel in which neither side sends anything for this time is closed.
        tunnel_timeout: Duration as time_or_off = "1h";
        /// With `http`: which fields tell a server who asked.
        forwarded: Forwarded as word = "x-forwarded";
        /// The name in the `Via` fields that are added; none: no field is added.
        via: Option<String> => via {
            /// With `http`: the name under which requests and replies that are forwarded get a `Via` field (RFC 9110
            /// §7.6.3): a pseudonym, or a host with or without a port; `off`: no field is added.
            via: String as name = "roadstead";
        };
        /// With `http`: requests with the method TRACE are forwarded; otherwise they are rejected with status 501.
        allow_trace: bool as switch = "false";
        /// With `http`: a request may ask for another protocol, such as WebSocket; otherwise its `Upgrade` is removed
        /// and it is served as a plain request. Upgrades to `h2c`, and those of HEAD, are always removed.
        allow_upgrade: bool as switch = "true";
        /// With `http`: addresses or networks of clients that are proxies, whose own such fields are kept. Those of a
        /// Unix socket are kept always: its file says who may connect.
        trusted: Vec<Network> as names;
        /// Which way requests go; the first that fits.
        routes: Vec<Route> => routes {
            /// With `http`: which way requests go; the first that fits.
            route: Vec<RouteRows> as list("pool");
        };
        /// With `http`: who is let through; without it, everybody.
        authenticate: Option<Authenticate> as table;
        /// What is changed in the heads of requests.
        request: route::Edits => request {
            /// With `http`: what is changed in the head of a request.
            request_headers: Option<Edited> as table;
        };
        /// What is changed in the heads of replies.
        reply: route::Edits => reply {
            /// With `http`: what is changed in the head of a server's reply, and added to answers of routes.
            response_headers: Option<Edited> as table;
        };
    }
}

fn via(group: &Group) -> Option<String> {
    group.text("via").filter(|via| *via != "off").map(str::to_owned)
}

// The checks have read these once.

fn routes(group: &Group) -> Vec<Route> {
    routing::routes(group, &mut Vec::new())
}

fn request(group: &Group) -> route::Edits {
    routing::edits(group, "request_headers", &mut Vec::new())
}

fn reply(group: &Group) -> route::Edits {
    routing::edits(group, "response_headers", &mut Vec::new())
}

words! {
    /// Which fields tell a server who asked.
    pub enum Forwarded {
        /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
        Legacy = "x-forwarded",
        /// `Forwarded` of RFC 7239.
        Standard = "standard",
        /// None.
        Off = "off",
    }
}

/// What the clients of a listener speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Requests and replies are frames.
    Frames(Framing),
    /// The connection is the request.
    Connect,
    /// A datagram is a request.
    Datagrams,
    /// HTTP/1.1 and 1.0.
    Http,
}

words! {
    impl Protocol {
        /// One request a line, one line a reply.
        Self::Frames(Framing::Lines) = "lines",
        /// A NUL behind each request and reply.
        Self::Frames(Framing::Nul) = "nul",
        /// A length of one byte before each. A connection whose first bytes look like HTTP or TLS is closed, to keep
        /// web pages out: a first frame of 71 bytes that begin with `ET `, for example.
        Self::Frames(Framing::Len1) = "len1",
        /// A big-endian length of two bytes before each. What looks like HTTP or TLS is closed, as with `len1`.
        Self::Frames(Framing::Len2) = "len2",
        /// A big-endian length of four bytes before each.
        Self::Frames(Framing::Len4) = "len4",
        /// Each as `5:hello,`.
        Self::Frames(Framing::Netstring) = "netstring",
        /// JSON-RPC messages, each behind a head with `Content-Length`, as LSP has it.
        Self::Frames(Framing::ContentLength) = "content-length",
        /// One JSON-RPC message a line; replies come in any order, found by their ids.
        Self::Frames(Framing::JsonRpc) = "jsonrpc",
        /// Whatever bytes come together are a request.
        Self::Frames(Framing::Raw) = "raw",
        /// The connection is the request, and its body the client's address; the reply is sent as it is, and the
        /// connection closed. What the client sends is discarded.
        Self::Connect = "connect",
        /// UDP, or a Unix socket of datagrams: one is a request, and its reply one to its sender; `connections_max`
        /// limits the requests on their way.
        Self::Datagrams = "datagrams",
        /// HTTP/1.1 and 1.0, to a pool of servers.
        Self::Http = "http",
    }
}

words! {
    /// How replies are marked.
    pub enum ReplyStyle {
        /// `status` with `len1`, `len2`, `len4` and `netstring`, whose replies may be any bytes; `plain` otherwise.
        /// On `raw` a rejection or failure adds no bytes: the connection is reset.
        Auto = "auto",
        /// As they are; refusals begin with `!`.
        Plain = "plain",
        /// Every reply begins with `+` (answered), `!` (refused) or `-` (failed or unknown).
        Status = "status",
    }
}

words! {
    /// What the end of a client's bytes means.
    pub enum HalfClose {
        /// It still wants its replies.
        Keep = "keep",
        /// It has left, and what no worker has begun to answer is given up.
        Left = "left",
    }
}

words! {
    /// What becomes of a client that sends a request over the limit.
    pub enum FrameOver {
        /// It is refused and passed over.
        Skip = "skip",
        /// It is refused, and the client gets what it is owed and no more.
        End = "end",
    }
}

words! {
    /// What becomes of a last line without a newline.
    pub enum LastLine {
        /// It is refused: it may have been cut off.
        Refuse = "refuse",
        /// It is a request like any other.
        Accept = "accept",
    }
}
