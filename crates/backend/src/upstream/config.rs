//! Where the servers of a pool are and how they are asked.

use std::time::Duration;

use event::StreamLimits;
use exchange::ByWorker;
use settings::Idempotent;

/// What the servers of a pool are.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Where they listen, and how that is shown.
    pub addresses: ByWorker<(event::Address, String)>,
    pub reply: wire::http1::Limits,
    pub limits: StreamLimits,
    pub connect: Duration,
    /// Until the first byte of the reply.
    pub deadline: Duration,
    pub between: Duration,
    pub total: Option<Duration>,
    pub idle: Duration,
    /// After so long without a word the kernel asks whether a server is there.
    pub keepalive: Option<Duration>,
    /// How often a request is given to another when one failed it.
    pub retries: settings::Retries,
    /// Which requests may be made again though a server had them.
    pub idempotent: Idempotent,
    /// Checks say when a server is down; without them it retires when it cannot be connected to.
    pub checked: bool,
    /// They are programs of ours.
    pub is_hosted: bool,
    /// What follows when one cannot be connected to is for the pool's home to say, on another shard.
    pub is_branch: bool,
}
