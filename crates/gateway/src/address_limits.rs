//! What a client may do by its address.

use std::time::Instant;

use exchange::{AddressId, ListenerId, Outcome};

/// Under which address a connection was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) listener: ListenerId,
    pub(crate) address: AddressId,
}

/// The limits of clients by their addresses, as a frontend asks for them.
pub(crate) trait AddressLimits {
    /// A request on a connection.
    ///
    /// # Errors
    /// Its rejection, when its address sends too many.
    fn request(&mut self, now: Instant, entry: Option<Entry>) -> Result<(), Outcome>;
}
