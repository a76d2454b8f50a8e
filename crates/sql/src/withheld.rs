//! The text in place of a message of a database that clients must not receive.

/// What clients receive in place of a message that may cite values.
pub const WITHHELD: &str = "an error within the statement";
