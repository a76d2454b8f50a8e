//! Listeners, as they are configured.

use std::time::Duration;

use super::address::{Address, Network};
use super::addresses::Addresses;
use super::program::Framing;
use super::route::{Authenticate, Route};

/// One listener (`[listener.NAME]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: Address,
    /// What its clients speak.
    pub protocol: Protocol,
    /// The pool that answers; none where routes alone say who does.
    pub pool: Option<String>,
    /// How replies are marked.
    pub reply: ReplyStyle,
    /// What the end of a client's bytes means.
    pub half_close: HalfClose,
    /// What becomes of a last line without a newline.
    pub last_line: LastLine,
    /// Connections at once; one more takes the place of an idle one, if there is any.
    pub connections_max: u32,
    /// Bytes of a request, without what marks its ends.
    pub frame_max: usize,
    /// What becomes of a client with a request over that.
    pub frame_over: FrameOver,
    /// Requests of one client at once; at the limit it is not read.
    pub in_flight_max: u32,
    /// Bytes of replies that wait for their turn, a client.
    pub reply_held_max: usize,
    /// Bytes of output that wait for a client to read them.
    pub send_max: usize,
    /// A client that sends nothing and is owed nothing for so long is closed; zero: never.
    pub idle: Duration,
    /// A client that has not begun its first request by then is closed; zero: never.
    pub first_request_timeout: Duration,
    /// A request that was begun must be complete after so long; zero: never.
    pub read: Duration,
    /// A client that takes none of its output for so long is closed; zero: never.
    pub write_stall: Duration,
    /// Bytes a second that a client must take over each `write_stall` in which output waits; zero: any.
    pub send_rate_min: usize,
    /// Connections that the kernel holds until they are accepted.
    pub backlog: u32,
    /// After so long without a word the kernel asks whether a client is there; zero: never.
    pub tcp_keepalive: Duration,
    /// Whether to bind an address whose former connections the kernel still remembers.
    pub reuse_address: bool,
    /// Its requests are in the access log, if there is one.
    pub access_log: bool,
    /// Whom it takes.
    pub addresses: Addresses,
    /// What only a listener of HTTP has.
    pub http: HttpListener,
}

/// What only a listener of HTTP has.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpListener {
    /// Bytes of the head of a request.
    pub head_max: usize,
    /// Bytes of the body of a request.
    pub body_max: usize,
    /// Bytes of all bodies together that are being taken whole before their requests go on.
    pub bodies_max: usize,
    /// Bytes a second that a body must bring over each `read`; zero: any.
    pub body_rate_min: usize,
    /// A tunnel in which neither side says anything for so long is ended; zero: never.
    pub tunnel_idle: Duration,
    /// Which fields tell a server who asked.
    pub forwarded: Forwarded,
    /// The name in the `Via` fields that are added; none: no field is added.
    pub via: Option<String>,
    /// Requests with the method TRACE are forwarded.
    pub allow_trace: bool,
    /// Requests may ask for another protocol.
    pub allow_upgrade: bool,
    /// Clients that are proxies.
    pub trusted: Vec<Network>,
    /// Which way requests go; the first that fits.
    pub routes: Vec<Route>,
    /// Who is let through.
    pub authenticate: Option<Authenticate>,
    /// What is changed in the heads of requests.
    pub request: route::Edits,
    /// What is changed in the heads of replies.
    pub reply: route::Edits,
}

/// Which fields tell a server who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// None.
    Nothing,
    /// `X-Forwarded-For` and its siblings.
    Legacy,
    /// `Forwarded` of RFC 7239.
    Standard,
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

/// How replies are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// By what the protocol can carry.
    Auto,
    /// As they are; refusals begin with `!`.
    Plain,
    /// Every reply begins with `+` (answered), `!` (refused) or `-` (failed or unknown).
    Status,
}

/// What the end of a client's bytes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// It still wants its replies.
    Keep,
    /// It has left.
    Left,
}

/// What becomes of a client that sends a request over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOver {
    /// The request is refused and passed over.
    Skip,
    /// The request is refused, and the client gets what it is owed and no more.
    End,
}

/// What becomes of a last line without a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It is refused: it may have been cut off.
    Refuse,
    /// It is a request like any other.
    Accept,
}
