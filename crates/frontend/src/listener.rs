//! The configuration of a listener.
//!
//! What it depends on: validated settings. What it must never depend on: a connection.

use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use exchange::{ListenerId, PoolId};

use observe::access_log::LoggedListener;

mod frames;
mod http;

pub use frames::FramesConfig;
pub use http::HttpConfig;

/// The configuration of a listener.
#[derive(Debug)]
pub struct ListenerConfig {
    /// The configured name.
    pub name: String,
    /// The id of the listener.
    pub id: ListenerId,
    /// The pool. If only routes select pools: the pool of the first such route, or else the first pool.
    pub pool: PoolId,
    /// A client that has shut down its sending direction still receives replies.
    pub keeps_half_closed: bool,
    /// The maximum number of connections.
    pub connections_max: u32,
    /// The maximum size of a datagram, in bytes.
    pub datagram_max: usize,
    /// How long a connection may be idle; `None`: no limit.
    pub idle: Option<Duration>,
    /// The time in which a client must begin its first request; `None`: no limit.
    pub first_request_timeout: Option<Duration>,
    /// How long a client may read nothing of its output; `None`: no limit.
    pub write_stall: Option<Duration>,
    /// The minimum rate at which a client must read its output, in bytes per second over each `write_stall`.
    pub send_rate_min: usize,
    /// Bytes of a reply that are buffered before its worker is paused.
    pub reply_buffered: usize,
    /// Buffer limits of the client streams.
    pub limits: StreamLimits,
    /// The protocol.
    pub front: FrontConfig,
    /// Limits per client address.
    pub addresses: settings::Addresses,
    /// Its description in the access log; `None`: its requests are not logged.
    pub logged: Option<Arc<LoggedListener>>,
}

/// The protocol of a listener.
#[derive(Debug)]
pub enum FrontConfig {
    /// Framed messages.
    Frames(Arc<FramesConfig>),
    /// Each connection is one request.
    Connect,
    /// Each datagram is one request. There are no sessions.
    Datagrams,
    /// HTTP/1.
    Http(Arc<HttpConfig>),
}
