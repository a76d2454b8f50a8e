//! What a client may do by its address.

use std::time::Instant;

use exchange::{AddressId, ListenerId, Outcome};

/// Under which address a connection was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub listener: ListenerId,
    pub address: AddressId,
}

/// The limits of clients by their addresses, as a frontend asks for them.
pub trait AddressLimits {
    /// A request on a connection.
    ///
    /// # Errors
    /// Its rejection, when its address sends too many.
    fn request(&mut self, now: Instant, entry: Option<Entry>) -> Result<(), Outcome>;
}
