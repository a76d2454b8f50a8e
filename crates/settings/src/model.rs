//! The configuration as a value: what the rows of options describe, parsed.
//!
//! Every struct is declared with the rows that fill it. Listeners and pools are known by their names, which outlive
//! any one configuration.

mod access_log;
mod address;
mod addresses;
mod balance;
mod daemon;
mod database;
mod key;
mod listener;
mod pool;
mod processors;
mod program;
mod retry_on;
mod route;
mod secret;
mod servers;
mod statuses;
mod target;

pub use access_log::*;
pub use address::*;
pub use addresses::*;
pub use balance::*;
pub use daemon::*;
pub use database::*;
pub use key::*;
pub use listener::*;
pub use pool::*;
pub use processors::*;
pub use program::*;
pub use retry_on::*;
pub use route::*;
pub use secret::*;
pub use servers::*;
pub(crate) use statuses::Statuses;
pub use target::*;

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
