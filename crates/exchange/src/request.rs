//! A request in flight.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use crate::{Head, RequestId, Slice};

/// The origin of a request.
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

/// The times at which a request reached its stages. They are monotonic and are taken once per iteration of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The request was received completely.
    pub received: Instant,
    /// A pool queued the request or assigned a slot to it.
    pub admitted: Option<Instant>,
    /// The request was sent to a worker.
    pub dispatched: Option<Instant>,
    /// The first byte of the reply was received.
    pub first_byte: Option<Instant>,
    /// The request ended.
    pub done: Option<Instant>,
}

impl Stamps {
    /// Creates the stamps of a request that was received at `now`.
    #[must_use]
    pub const fn received(now: Instant) -> Self {
        Self { received: now, admitted: None, dispatched: None, first_byte: None, done: None }
    }
}

/// One request, in the form for a worker.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id of the request. It is unique until the daemon exits.
    pub id: RequestId,
    /// The client.
    pub peer: Peer,
    /// The bytes of the request, without framing. In a `then` chain: the reply of the previous pool.
    pub body: Slice,
    /// The time of receipt, in microseconds since the Unix epoch.
    pub at_us: i64,
    /// The head of an HTTP request; `None` for any other request. The body of an HTTP request is complete and has no
    /// transfer coding.
    pub head: Option<Box<Head>>,
}

impl Request {
    /// The head of an HTTP request; `None` for any other request.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_deref()
    }
}
