//! Where the servers of a pool are and how they are asked.

use std::time::Duration;

use event::StreamLimits;
use exchange::ByWorker;
use settings::Idempotent;

/// What the servers of a pool are.
#[derive(Clone, Debug)]
pub(crate) struct ServersConfig {
    /// Where they listen, and how that is shown.
    pub(crate) addresses: ByWorker<(event::Address, String)>,
    pub(crate) reply: wire::http1::Limits,
    pub(crate) limits: StreamLimits,
    pub(crate) connect: Duration,
    /// Until the first byte of the reply.
    pub(crate) deadline: Duration,
    pub(crate) between: Duration,
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Duration,
    /// After so long without a word the kernel asks whether a server is there.
    pub(crate) keepalive: Option<Duration>,
    /// How often a request is given to another when one failed it.
    pub(crate) retries: settings::Retries,
    /// Which requests may be made again though a server had them.
    pub(crate) idempotent: Idempotent,
    /// Checks say when a server is down; without them it retires when it cannot be connected to.
    pub(crate) checked: bool,
    /// They are programs of ours.
    pub(crate) is_hosted: bool,
    /// What follows when one cannot be connected to is for the pool's home to say, on another shard.
    pub(crate) is_branch: bool,
}
