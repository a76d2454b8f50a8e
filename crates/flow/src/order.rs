//! Commands of an operator to a pool.

use exchange::AdminState;

/// A command of an operator to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Switches the fallback response of the pool on or off.
    Fallback(bool),
    /// Sets the weight of the named worker; `None`: the configured weight.
    Weight(String, Option<u32>),
    /// The named worker receives no requests.
    Disable(String),
    /// The named worker receives requests again.
    Enable(String),
    /// The named worker serves the clients that are bound to it, and receives no other requests.
    Drain(String),
    /// What is stored for the named worker on all machines of a site. The result is a remark about this daemon, which
    /// may be empty.
    Stored {
        /// The worker.
        worker: String,
        /// Its state.
        admin_state: AdminState,
        /// Its weight; `None`: the configured weight.
        weight: Option<u32>,
        /// Who set it, for the log.
        by: String,
    },
}
