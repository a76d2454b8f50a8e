//! The configuration of servers on the network.

use std::time::Duration;

use event::StreamLimits;
use exchange::ByWorker;
use settings::Idempotent;

/// The configuration of a pool of servers.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The addresses, and their display forms.
    pub addresses: ByWorker<(event::Address, String)>,
    /// Limits of reply heads and bodies.
    pub reply: wire::http1::Limits,
    /// Buffer limits of the connections.
    pub limits: StreamLimits,
    /// The time in which a connection must be established.
    pub connect: Duration,
    /// The maximum time from the request to the first byte of the reply.
    pub deadline: Duration,
    /// The maximum gap between two reads of a reply.
    pub between: Duration,
    /// The maximum duration of a whole exchange; `None`: no limit.
    pub total: Option<Duration>,
    /// The time for which an idle connection is kept.
    pub idle: Duration,
    /// The idle time before TCP keepalive probes; `None`: they are off.
    pub keepalive: Option<Duration>,
    /// Retries of failed requests on other servers.
    pub retries: settings::Retries,
    /// Which requests may be retried after a server may have received them.
    pub idempotent: Idempotent,
    /// Whether health checks determine if a server is down. Without health checks, a server retires when a connection
    /// fails.
    pub checked: bool,
    /// Whether the servers are programs that the daemon starts.
    pub is_spawned_http: bool,
    /// Whether this is a member shard. The owner shard then handles failed connections.
    pub is_member_shard: bool,
}
