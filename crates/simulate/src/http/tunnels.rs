//! Tunnels: the data of both sides after a 101.
//!
//! ```text
//!   visitor  requests ──101──▶ Talks ──all sent──▶ half-closes ──the server's end──▶ closes
//!                                └── closes immediately
//!   server   101 ──▶ Talks ──the visitor's end──▶ sends the rest, closes
//!                      ├── half-closes and continues to read
//!                      └── closes by itself, or resets
//! ```
//!
//! - No data of a tunnel reaches a server before its 101.
//! - Each side receives the data of the other side. If a tunnel ends without an error, all data has arrived.
//! - While a server does not read, the gateway holds no more than its buffers allow.

use crate::scheduled_event::Moment;

/// The state of a server that has changed the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnel {
    /// The offset of its beginning in the bytes that the server was given.
    pub(crate) at: usize,
    pub(crate) id: u64,
    /// How many of the received bytes were compared with the data of the visitor.
    pub(crate) compared: usize,
    /// The server does not read before this time.
    pub(crate) deaf_until: Option<Moment>,
    /// Whether the server has ended, or will end when all is sent.
    pub(crate) is_ending: bool,
}

/// How a visitor ends a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// It half-closes at this time, or when all is sent if that is later, and waits for the rest.
    SaysNoMore(Moment),
    /// It closes when all is sent.
    Leaves,
}
