//! A change of a server's health, for other daemons.

use crate::PoolId;

/// A health check or the requests of this daemon have found that a server is up or down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthNotice {
    /// The pool of the server.
    pub pool: PoolId,
    /// Its name in the configuration.
    pub worker: String,
    /// The number that bindings of clients to it have in all daemons.
    pub target: u64,
    /// Whether it receives requests again.
    pub is_up: bool,
}
