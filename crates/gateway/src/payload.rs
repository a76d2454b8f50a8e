//! What a request carries from its client to the worker that gets it, written for no worker yet.

use exchange::{Peer, RequestId, Slice};

use crate::http_request::HttpRequest;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// Bytes, without what marks their ends.
    Frame(Slice),
    /// A message of HTTP: its head, and what has come of its body, framed as the head says.
    Http(HttpRequest, Slice),
}

impl Payload {
    /// Bytes of memory that it holds.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Frame(body) => body.held(),
            Self::Http(request, body) => request.held() + body.held(),
        }
    }

    /// The same in memory of its own size.
    pub(crate) fn compact(self) -> Self {
        match self {
            Self::Frame(body) => Self::Frame(body.compact()),
            Self::Http(request, body) => Self::Http(request.compact(), body.compact()),
        }
    }
}

impl Default for Payload {
    /// An empty frame.
    fn default() -> Self {
        Self::Frame(Slice::default())
    }
}

impl From<Slice> for Payload {
    fn from(body: Slice) -> Self {
        Self::Frame(body)
    }
}

/// A request as a worker is given it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) peer: Peer,
    /// Microseconds since the Unix epoch at its receipt.
    pub(crate) at_us: i64,
    pub(crate) payload: Payload,
}
