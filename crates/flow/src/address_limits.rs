//! Limits per client address.

use std::time::Instant;

use exchange::{AddressId, ListenerId, Outcome};

/// The listener and the client address under which a connection was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The listener that accepted the connection.
    pub listener: ListenerId,
    /// The client address in the table of that listener.
    pub address: AddressId,
}

/// Limits per client address, as frontends use them.
pub trait AddressLimits {
    /// Counts one request on a connection. Without an `entry` there is no limit.
    ///
    /// # Errors
    /// The outcome for the client, when its address exceeds its request rate.
    fn request(&mut self, now: Instant, entry: Option<Entry>) -> Result<(), Outcome>;
}
