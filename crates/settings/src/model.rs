//! The typed configuration: the parsed values of the rows of options.
//!
//! Every struct is declared with the rows that fill it. Listeners and pools are identified by their names, which remain
//! the same across configurations.

mod access_log;
mod addresses;
mod balance;
mod cluster;
mod daemon;
mod database;
mod listener;
mod pool;
mod program;
mod retry_on;
mod route;
pub(crate) mod routing;
mod servers;
mod statuses;

use std::collections::BTreeSet;

pub use crate::values::{
    Address, DatabaseHost, HostName, Key, Network, Processors, Secret, ServerTarget, Target,
};
pub use access_log::*;
pub use addresses::*;
pub use balance::*;
pub use cluster::*;
pub use daemon::*;
pub use database::*;
pub use listener::*;
pub use pool::*;
pub use program::*;
pub use retry_on::*;
pub use route::*;
pub use servers::*;
pub(crate) use statuses::statuses;

/// A whole, checked configuration: every name that it mentions is defined in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Settings of the daemon as a whole.
    pub daemon: Daemon,
    /// The admin address, if there is one.
    pub admin: Option<Admin>,
    /// The access log, if there is one.
    pub access_log: Option<AccessLog>,
    /// The cluster, if there is one.
    pub cluster: Option<Cluster>,
    /// Listeners, in the order of the file.
    pub listeners: Vec<Listener>,
    /// Pools, in the order of the file.
    pub pools: Vec<Pool>,
    /// Names of the environment variables whose values options have, except those of secrets.
    pub variables: BTreeSet<String>,
}

impl Configuration {
    /// Returns how many listeners and pools there are, for messages: `1 listener, 2 pools`.
    #[must_use]
    pub fn summary(&self) -> String {
        let counted =
            |count: usize, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (listeners, pools) = (self.listeners.len(), self.pools.len());
        format!("{}, {}", counted(listeners, "listener"), counted(pools, "pool"))
    }
}
