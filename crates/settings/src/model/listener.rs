//! Listeners.

use std::time::Duration;

use super::addresses::Addresses;
use super::program::Framing;
use super::route::{Authenticate, HeaderEdits, Route, RouteRows};
use super::routing;
use crate::options::kinds::GIB;
use crate::options::{Group, Needs, Reload, Setting, options, words};
use crate::values::{Address, Network};

options! {
    /// One listener (`[listener.NAME]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Listener of Any reload Live {
        /// The name.
        name: String => name {};
        /// Address to listen on.
        listen: Address as address = required, reload(Reload::Restart);
        /// Pool that answers. On a listener with routes, it answers requests that match no route.
        pool: Option<String> as pool;
        /// Protocol of the clients.
        protocol: Protocol as word = "lines", reload(Reload::Restart);
        /// How replies are distinguished from rejections.
        reply: ReplyStyle as word = "auto";
        /// How a half-close by the client is treated.
        half_close: HalfClose => half_close {
            /// How a half-close by the client is treated. Default with `http`: `left`.
            half_close: HalfClose as word = "keep";
        };
        /// How an incomplete last line, or other frame, is treated when the client ends its output.
        last_line: LastLine as word = "refuse";
        /// Maximum number of connections. At the limit, a new connection replaces the idle connection that has been
        /// silent longest; if none is idle, the new connection is refused.
        connections_max: u32 as count(1, 1_000_000) = "10000";
        /// Maximum size of a request, excluding framing. Default with `jsonrpc` and `content-length`: 16MiB.
        frame_max: usize as size(1, GIB) = "64KiB", reload(Reload::RestartIf("`protocol` is `datagrams`"));
        /// How a client that sends a request over `frame_max` is treated.
        frame_over: FrameOver as word = "skip";
        /// Maximum number of requests in flight of one client. At the limit, the client is not read.
        in_flight_max: u32 as count(1, 1_000_000) = "64";
        /// Maximum number of bytes of a client's replies that wait for earlier replies.
        reply_held_max: usize as size(1, GIB) = "1MiB";
        /// Maximum number of bytes of output that wait for a client to read them. Above it, the connection is closed.
        /// Default with `jsonrpc` and `content-length`: 16MiB.
        send_max: usize as size(1, GIB) = "4MiB", reload(Reload::RestartIf("it becomes the smallest of all listeners, and there are several shards"));
        /// Maximum time without a request.
        idle_timeout: Duration => idle_timeout {
            /// A client that sends nothing and waits for no reply is closed after this time. Default with `http`: 75s.
            idle_timeout: Duration as time_or_off = "10m", former(&["idle"]);
        };
        /// Maximum time from the connection of a client to the first byte of its first request. Then the connection is
        /// closed.
        first_request_timeout: Duration as time_or_off = "10s";
        /// Maximum time to receive a whole request, from its first byte.
        request_read_timeout: Duration as time_or_off = "10s", former(&["read"]);
        /// A client that reads none of its output for this time is closed.
        send_timeout: Duration as time_or_off = "30s", former(&["write_stall"]);
        /// Minimum number of bytes per second that a client must read while output waits for it, measured over each
        /// `send_timeout`.
        send_rate_min: usize as size_or_off(1, GIB) = "512B";
        /// Options of HTTP listeners.
        http: HttpListener;
        /// Which client addresses the listener accepts.
        addresses: Addresses;
        /// Whether requests of this listener are written to the access log, if there is one.
        access_log: bool as switch = "true";
        /// Maximum number of connections that the kernel queues before they are accepted.
        backlog: u32 as count(1, 65_535) = "4096", reload(Reload::Restart);
        /// TCP keepalive: after this time without traffic the kernel probes the client, and the connection is closed if
        /// there is no answer within as long again.
        tcp_keepalive_interval: Duration as time_or_off = "2m", reload(Reload::Restart), former(&["tcp_keepalive"]);
    }
}

fn name(group: &Group) -> String {
    group.name.clone()
}

/// The default with HTTP: browsers keep connections open that they no longer need.
const HTTP_IDLE_TIMEOUT: Duration = Duration::from_secs(75);

fn idle_timeout(group: &Group) -> Duration {
    let is_http = group.is("protocol", Protocol::Http) && group.key("idle_timeout").is_none();
    if is_http { HTTP_IDLE_TIMEOUT } else { Duration::of(group.value("idle_timeout")) }
}

/// The default depends on the protocol: a browser that closes has left. A client that sends messages may only have
/// finished sending.
fn half_close(group: &Group) -> HalfClose {
    let is_http = group.is("protocol", Protocol::Http) && group.key("half_close").is_none();
    if is_http { HalfClose::Left } else { group.get("half_close").unwrap_or(HalfClose::Keep) }
}

options! {
    /// Options of HTTP listeners.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HttpListener of Any reload Live {
        /// With `http`: maximum size of the head of a request, in bytes.
        head_max: usize as size(256, 65_535) = "16KiB";
        /// With `http`: maximum size of the body of a request, in bytes.
        body_max: usize as size(1, 64 * GIB) = "1MiB";
        /// With `http`: maximum size of all bodies together that are buffered completely before a program receives
        /// them; above it, requests are rejected with 503. One client address that is not `trusted` may use at most
        /// half of what others leave, but always one body.
        bodies_max: usize as size(1, 64 * GIB) = "64MiB";
        /// With `http`: minimum number of body bytes per second that a client must send, measured over each
        /// `request_read_timeout`.
        body_rate_min: usize as size_or_off(1, GIB) = "240B";
        /// With `http`: a tunnel in which neither side sends anything for this time is closed.
        tunnel_timeout: Duration as time_or_off = "1h", former(&["tunnel_idle"]);
        /// With `http`: header fields that pass the address of the client to a server.
        forwarded: Forwarded as word = "x-forwarded";
        /// The name in the `Via` fields that are added. `None`: no field is added.
        via: Option<String> => via {
            /// With `http`: name in the `Via` field (RFC 9110 §7.6.3) that is added to forwarded requests and replies:
            /// a pseudonym, or a host with or without a port; `off`: no field is added.
            via: String as name = "roadstead", needs(Needs::HttpListener);
        };
        /// With `http`: whether requests with the method TRACE are forwarded. Otherwise they are rejected with status
        /// 501.
        allow_trace: bool as switch = "false", needs(Needs::HttpListener);
        /// With `http`: whether a request may upgrade to another protocol, such as WebSocket. Otherwise its `Upgrade`
        /// is removed and it is served as a plain request. Upgrades to `h2c`, and those of HEAD, are always removed.
        allow_upgrade: bool as switch = "true", needs(Needs::HttpListener);
        /// With `http`: addresses or networks of proxies. Forwarding fields that these clients send are kept. The
        /// fields of clients of a Unix socket are always kept, because the permissions of its file limit who may
        /// connect.
        trusted: Vec<Network> as names;
        /// The routes, in order. The first match applies.
        routes: Vec<Route> => routes {
            /// With `http`: routes of requests, in order. The first match applies.
            route: Vec<RouteRows> as list("pool"), needs(Needs::HttpListener);
        };
        /// With `http`: authentication of clients. Without it, every client is accepted.
        authenticate: Option<Authenticate> as table, needs(Needs::HttpListener);
        /// Changes to the heads of requests.
        request: route::Edits => request {
            /// With `http`: changes to the head of a request.
            request_headers: Option<HeaderEdits> as table, needs(Needs::HttpListener);
        };
        /// Changes to the heads of replies.
        reply: route::Edits => reply {
            /// With `http`: changes to the head of a server's reply. They also apply to answers of routes.
            response_headers: Option<HeaderEdits> as table, needs(Needs::HttpListener);
        };
    }
}

fn via(group: &Group) -> Option<String> {
    group.text("via").filter(|via| *via != "off").map(str::to_owned)
}

// The checks have parsed these before, without errors.

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
    /// The header fields that pass the address of the client to a server.
    pub enum Forwarded {
        /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
        Legacy = "x-forwarded",
        /// `Forwarded` of RFC 7239.
        Standard = "standard",
        /// No field.
        Off = "off",
    }
}

/// The protocol of the clients of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Requests and replies are frames.
    Frames(Framing),
    /// A connection is a request.
    Connect,
    /// A datagram is a request.
    Datagrams,
    /// HTTP/1.1 and HTTP/1.0.
    Http,
}

words! {
    impl Protocol {
        /// One line per request, one line per reply.
        Self::Frames(Framing::Lines) = "lines",
        /// A NUL after each request and reply.
        Self::Frames(Framing::Nul) = "nul",
        /// A length of one byte before each. A connection whose first bytes look like HTTP or TLS is closed, to keep
        /// out web pages: for example, a first frame of 71 bytes that begins with `ET `.
        Self::Frames(Framing::Len1) = "len1",
        /// A big-endian length of two bytes before each. A connection that looks like HTTP or TLS is closed, as with
        /// `len1`.
        Self::Frames(Framing::Len2) = "len2",
        /// A big-endian length of four bytes before each.
        Self::Frames(Framing::Len4) = "len4",
        /// Each in the form `5:hello,`.
        Self::Frames(Framing::Netstring) = "netstring",
        /// JSON-RPC messages, each after a head with `Content-Length`, as in LSP.
        Self::Frames(Framing::ContentLength) = "content-length",
        /// One JSON-RPC message per line. Replies come in any order and are matched by their ids.
        Self::Frames(Framing::JsonRpc) = "jsonrpc",
        /// The bytes that arrive together are a request.
        Self::Frames(Framing::Raw) = "raw",
        /// The connection is the request, and its body is the client's address. The reply is sent unchanged, then the
        /// connection is closed. Input from the client is discarded.
        Self::Connect = "connect",
        /// UDP, or a Unix datagram socket: one datagram is a request, and its reply is one datagram to its sender.
        /// `connections_max` limits the requests in flight.
        Self::Datagrams = "datagrams",
        /// HTTP/1.1 and HTTP/1.0.
        Self::Http = "http",
    }
}

words! {
    /// How replies are distinguished from rejections.
    pub enum ReplyStyle {
        /// `status` with `len1`, `len2`, `len4` and `netstring`, whose replies may be any bytes; `plain` otherwise.
        /// On `raw` a rejection or failure adds no bytes: the connection is reset.
        Auto = "auto",
        /// Replies are unchanged; rejections begin with `!`.
        Plain = "plain",
        /// Every reply begins with `+` (answered), `!` (rejected) or `-` (failed or unknown).
        Status = "status",
    }
}

words! {
    /// How a half-close by a client is treated.
    pub enum HalfClose {
        /// The client still waits for its replies.
        Keep = "keep",
        /// The client has left. Requests that no worker has begun to answer are abandoned.
        Left = "left",
    }
}

words! {
    /// How a client that sends a request over the limit is treated.
    pub enum FrameOver {
        /// The request is rejected and skipped.
        Skip = "skip",
        /// The request is rejected. The client receives its outstanding replies, then the connection is closed.
        End = "end",
    }
}

words! {
    /// How a last line without a newline is treated.
    pub enum LastLine {
        /// It is rejected, because it may be incomplete.
        Refuse = "refuse",
        /// It is a request like any other.
        Accept = "accept",
    }
}
