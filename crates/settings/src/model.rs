//! The configuration as a value: what the table of options describes, parsed.
//!
//! Listeners and pools are known by their names, which outlive any one configuration.

mod access_log;
mod addresses;
mod database;
mod listener;
mod pool;
mod program;
mod route;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use access_log::*;
pub use addresses::*;
pub use database::*;
pub use listener::*;
pub use pool::*;
pub use program::*;
pub use route::*;

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

impl Address {
    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Internet(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
            Self::Inherited(_) | Self::Named(_) => false,
        }
    }
}

/// Where to listen or to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port; port 0 lets the system choose.
    Internet(SocketAddr),
    /// A Unix socket, written `unix:/path`.
    Unix(PathBuf),
    /// A listening socket that whoever starts the daemon hands over under this name, as systemd
    /// does; written `fd:NAME`.
    Inherited(String),
    /// A host by its name, whose address is looked up; only to connect to.
    Named(HostName),
}

/// A host by its name, and a port from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName {
    /// The name, in small letters.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "fd:{name}"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
