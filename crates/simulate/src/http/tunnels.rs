//! Tunnels: what both sides say to each other behind a 101.
//!
//! ```text
//!   visitor  asks ──101──▶ Talks ──all said──▶ says no more ──the server's end──▶ closes
//!                             └── leaves at once
//!   server   101 ──▶ Talks ──the visitor's end──▶ says the rest, closes
//!                      ├── says no more, and listens on
//!                      └── closes of itself, or resets
//! ```
//!
//! - Nothing of a tunnel reaches a server before its 101.
//! - Either side gets what the other said to it, and what looks like its end is all of it.
//! - While a server does not listen the gateway keeps no more than its buffers hold.

use crate::happening::Moment;

/// What a server speaks that has changed the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnel {
    /// Where it begins in what the server was given.
    pub(crate) at: usize,
    pub(crate) id: u64,
    /// How much of what it received was compared with what the visitor said.
    pub(crate) compared: usize,
    /// It does not listen before then.
    pub(crate) deaf_until: Option<Moment>,
    /// The server has ended, or will once all is said.
    pub(crate) is_ending: bool,
}

/// How a visitor ends a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// It says no more and waits for the rest, once all is said or then.
    SaysNoMore(Moment),
    /// It closes once all is said.
    Leaves,
}
