//! What a listener is configured with, and what its clients speak.
//!
//! What it knows: settings that were read. What it must never know: a connection.

use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use exchange::{ListenerId, PoolId};

use observe::access_log::LoggedListener;

mod frames;
mod http;

pub use frames::FramesConfig;
pub use http::HttpConfig;

/// What a session needs to know of its listener.
#[derive(Debug)]
pub struct ListenerConfig {
    pub name: String,
    pub id: ListenerId,
    /// Its pool; where routes alone say who answers, the first that one names, or the first there is.
    pub pool: PoolId,
    pub keeps_half_closed: bool,
    pub connections_max: u32,
    /// Bytes of a datagram that is taken.
    pub datagram_max: usize,
    pub idle: Option<Duration>,
    pub first_request_timeout: Option<Duration>,
    pub write_stall: Option<Duration>,
    /// Bytes a second that a client must take over each `write_stall`.
    pub send_rate_min: usize,
    /// Bytes of a reply that its worker need not wait with.
    pub reply_buffered: usize,
    pub limits: StreamLimits,
    pub front: FrontConfig,
    pub addresses: settings::Addresses,
    /// What the access log says of it, if its requests are in the log.
    pub logged: Option<Arc<LoggedListener>>,
}

/// What clients speak.
#[derive(Debug)]
pub enum FrontConfig {
    Frames(Arc<FramesConfig>),
    /// The connection is the request.
    Connect,
    /// A datagram is one. There are no sessions.
    Datagrams,
    Http(Arc<HttpConfig>),
}
