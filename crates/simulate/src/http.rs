//! Those who speak HTTP with the gateway: visitors who ask it, and servers that it asks.
//!
//! ```text
//!   Away ──connects, or is reached──▶ There ──its own end, the gateway's, or a reset──▶ Done
//! ```
//!
//! What a speaker says is decided by its role; here stands what all have: bytes in, bytes out in
//! pieces, and the ways to end a connection.

pub(crate) mod dues;
pub(crate) mod hosts;
pub(crate) mod log;
pub(crate) mod message;
pub(crate) mod servers;
pub(crate) mod speakers;
pub(crate) mod tunnels;
pub(crate) mod visitors;
