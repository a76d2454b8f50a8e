//! The configuration as a value: what the table of options describes, parsed.
//!
//! Listeners and pools are known by their names, which outlive any one configuration.

mod access_log;
mod address;
mod addresses;
mod balance;
mod database;
mod listener;
mod pool;
mod program;
mod retry_on;
mod route;
mod secret;

use std::time::Duration;

pub use access_log::*;
pub use address::*;
pub use addresses::*;
pub use balance::*;
pub use database::*;
pub use listener::*;
pub use pool::*;
pub use program::*;
pub use retry_on::*;
pub use route::*;
pub use secret::*;

/// A whole configuration, checked: every name that it mentions is defined in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Settings of the daemon as a whole.
    pub daemon: Daemon,
    /// The admin address, if there is one.
    pub admin: Option<Admin>,
    /// The access log, if there is one.
    pub access_log: Option<AccessLog>,
    /// Listeners, in the order of the file.
    pub listeners: Vec<Listener>,
    /// Pools, in the order of the file.
    pub pools: Vec<Pool>,
}

/// Settings of the daemon as a whole (`[daemon]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    /// How long a drain may take before it is cut.
    pub drain: Duration,
    /// How long an HTTP connection without a request stays open during a drain.
    pub drain_keepalive_timeout: Duration,
    /// Bytes of memory that what waits may occupy; none: by the memory of the system.
    pub memory_max: Option<usize>,
    /// What its loops wait with.
    pub event: EventKernel,
    /// How many loops there are.
    pub shards: Shards,
}

/// Loops of a daemon, each on a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    /// As many as there are processors for it.
    Auto,
    /// So many, 1 to 64.
    Count(u32),
}

/// What the loops of the daemon wait for the kernel with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKernel {
    /// The best of this system.
    Auto,
    /// epoll.
    Epoll,
    /// poll.
    Poll,
    /// select.
    Select,
}

/// The admin address (`[admin]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where metrics, status and commands are served.
    pub listen: Address,
    /// The bearer token for full access.
    pub token: Option<Secret>,
    /// The group whose members have full access through the Unix socket.
    pub group: Option<String>,
    /// Host names accepted in addition to the default ones.
    pub allowed_hosts: Vec<String>,
    /// Maximum number of connections.
    pub max_connections: u32,
    /// Maximum time to receive the headers of a request.
    pub header_timeout: Duration,
}
