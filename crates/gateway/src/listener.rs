//! What a listener is configured with, and what its clients speak.
//!
//! What it knows: settings that were read. What it must never know: a connection.

use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use exchange::{ListenerId, PoolId};

use crate::logbook::LoggedListener;

mod frames;
mod http;

pub(crate) use frames::FramesConfig;
pub(crate) use http::HttpConfig;

/// What a session needs to know of its listener.
#[derive(Debug)]
pub(crate) struct ListenerConfig {
    pub(crate) name: String,
    pub(crate) id: ListenerId,
    /// Its pool; where routes alone say who answers, the first that one names, or the first there is.
    pub(crate) pool: PoolId,
    pub(crate) keeps_half_closed: bool,
    pub(crate) connections_max: u32,
    /// Bytes of a datagram that is taken.
    pub(crate) datagram_max: usize,
    pub(crate) idle: Option<Duration>,
    pub(crate) first_request_timeout: Option<Duration>,
    pub(crate) write_stall: Option<Duration>,
    /// Bytes a second that a client must take over each `write_stall`.
    pub(crate) send_rate_min: usize,
    /// Bytes of a reply that its worker need not wait with.
    pub(crate) reply_buffered: usize,
    pub(crate) limits: StreamLimits,
    pub(crate) front: FrontConfig,
    pub(crate) addresses: settings::Addresses,
    /// What the access log says of it, if its requests are in the log.
    pub(crate) logged: Option<Arc<LoggedListener>>,
}

/// What clients speak.
#[derive(Debug)]
pub(crate) enum FrontConfig {
    Frames(Arc<FramesConfig>),
    /// The connection is the request.
    Connect,
    /// A datagram is one. There are no sessions.
    Datagrams,
    Http(Arc<HttpConfig>),
}
