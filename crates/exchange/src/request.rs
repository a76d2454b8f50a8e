//! A request on its way.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use crate::{RequestId, Slice};

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client on the network.
    Internet(SocketAddr),
    /// A client on a Unix socket.
    Local,
    /// A client in this process: an embedder, `ask`, a benchmark.
    Inside,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Local => f.write_str("unix"),
            Self::Inside => f.write_str("inside"),
        }
    }
}

/// When a request reached each step of its life. Monotonic, as the loop saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// All of it was received.
    pub received: Instant,
    /// A pool took it into its queue or gave it a slot.
    pub admitted: Option<Instant>,
    /// It was handed to a worker.
    pub dispatched: Option<Instant>,
    /// The first byte of its reply came.
    pub first_byte: Option<Instant>,
    /// It ended.
    pub done: Option<Instant>,
}

impl Stamps {
    /// The stamps of a request received at `now`.
    #[must_use]
    pub const fn received(now: Instant) -> Self {
        Self { received: now, admitted: None, dispatched: None, first_byte: None, done: None }
    }
}

/// One request as a worker sees it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its id, unique as long as the daemon lives.
    pub id: RequestId,
    /// Who asked.
    pub peer: Peer,
    /// Its bytes, without their framing. In a `then` chain, the reply of the pool before.
    pub body: Slice,
    /// When it was received, in microseconds since the Unix epoch.
    pub at_us: i64,
}
