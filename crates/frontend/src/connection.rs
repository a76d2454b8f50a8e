//! The part of a listener's configuration that each of its connections needs, whatever its protocol is.
//!
//! What it depends on: validated settings. What it must never depend on: a stream, a session.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use exchange::{ListenerId, PoolId};

use observe::access_log::LoggedListener;

/// The configuration of the connections of a listener.
#[derive(Debug)]
pub struct ConnectionConfig {
    /// The id of the listener.
    pub id: ListenerId,
    /// The pool. If only routes select pools: the pool of the first such route, or else the first pool.
    pub pool: PoolId,
    /// A client that has shut down its sending direction still receives replies.
    pub keeps_half_closed: bool,
    /// How long a connection may be idle; `None`: no limit.
    pub idle: Option<Duration>,
    /// The time in which a client must begin its first request; `None`: no limit.
    pub first_request_timeout: Option<Duration>,
    /// How long a client may read nothing of its output; `None`: no limit.
    pub send_timeout: Option<Duration>,
    /// The minimum rate at which a client must read its output, in bytes per second over each `send_timeout`.
    pub send_rate_min: usize,
    /// Bytes of a reply that are buffered before its worker is paused.
    pub reply_buffered: usize,
    /// Buffer limits of the client streams.
    pub limits: StreamLimits,
    /// Its description in the access log; `None`: its requests are not logged.
    pub logged: Option<Arc<LoggedListener>>,
    /// The configuration of its protocol, whose type only the protocol knows:
    /// see [`Transport::protocol_config`](crate::transport::Transport::protocol_config).
    pub protocol: Arc<dyn Any + Send + Sync>,
}
