//! Parties that speak HTTP with the gateway: visitors (HTTP clients) and servers.
//!
//! ```text
//!   Away ──connects, or is connected──▶ There ──its own end, end by the gateway, or reset──▶ Done
//! ```
//!
//! The role of a speaker decides what it sends. This module contains what all speakers have in common: bytes in, bytes
//! out in pieces, and the ways to end a connection.

pub(crate) mod distribution;
pub(crate) mod hosts;
pub(crate) mod log;
pub(crate) mod message;
pub(crate) mod servers;
pub(crate) mod speakers;
pub(crate) mod tunnels;
pub(crate) mod visitors;
