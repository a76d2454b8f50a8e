//! The content of a request between client and worker, before it is encoded for a worker.

use exchange::{Peer, RequestId, Slice};

use wire::http1::{Body, BodyKind, Kind, Limits};

use crate::http_request::HttpRequest;
use crate::request_shape::RequestShape;

/// The content of a request.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A message, excluding framing.
    Frame(Slice),
    /// An HTTP request: its head and the body bytes received so far, with the transfer coding that the head states.
    Http(HttpRequest, Slice),
}

/// The direction in which a request crosses between two shards, seen from this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// It goes to another shard.
    Leaves,
    /// It came from another shard.
    Arrives,
}

impl Payload {
    /// Allocated memory in bytes.
    pub fn held(&self) -> usize {
        match self {
            Self::Frame(body) => body.held(),
            Self::Http(request, body) => request.held() + body.held(),
        }
    }

    /// Updates the accounting of this thread when the request moves to or from another shard.
    pub fn cross(&self, crossing: Crossed) {
        match (self, crossing) {
            (Self::Frame(_), _) => {}
            (Self::Http(request, _), Crossed::Leaves) => request.leave(),
            (Self::Http(request, _), Crossed::Arrives) => request.arrive(),
        }
    }

    /// Frees memory that the content does not need.
    pub fn compact(self) -> Self {
        match self {
            Self::Frame(body) => Self::Frame(body.compact()),
            Self::Http(request, body) => Self::Http(request.compact(), body.compact()),
        }
    }
}

// Errors for a request that a `then` pool cannot accept.
const NO_MESSAGE: &str = "it is a frame, and goes on to a pool that takes messages of HTTP only";
const NOT_WHOLE: &str =
    "its body is still coming, and goes on to a pool that takes a whole one only";
const WITH_BODY: &str = "a question has no body";

impl Payload {
    /// Converts a request that was submitted to one pool for the workers of another, which accept requests of this
    /// shape. `more`: the body is not complete.
    ///
    /// # Errors
    /// A message for the client, when the request cannot be converted.
    pub fn fitted(self, shape: &RequestShape, more: bool) -> Result<Self, &'static str> {
        let (mut request, body) = match self {
            Self::Http(request, body) => (request, body),
            Self::Frame(_) if *shape == RequestShape::Messages => return Err(NO_MESSAGE),
            Self::Frame(frame) => return Ok(Self::Frame(frame)),
        };
        if *shape == RequestShape::Messages {
            request.head_mut().mark_complete();
            return Ok(Self::Http(request, body));
        }
        if more {
            return Err(NOT_WHOLE);
        }
        let body = unframed(&mut request, body).ok_or(NOT_WHOLE)?;
        if matches!(shape, RequestShape::Records(_)) && !body.is_empty() {
            return Err(WITH_BODY);
        }
        shape.check(&request, &mut Vec::new()).map_err(|unfit| unfit.text)?;
        Ok(Self::Http(request, body))
    }
}

/// A body without its chunked coding. `None`: the body is not complete.
fn unframed(request: &mut HttpRequest, body: Slice) -> Option<Slice> {
    let head = request.head_mut();
    if !head.sends_chunks() {
        return Some(body);
    }
    // Its session has read it by the limits of its listener.
    let mut chunks = Body::new(BodyKind::Chunked, &Limits::REQUEST);
    let (mut data, mut rest) = (Vec::new(), &body[..]);
    while !chunks.is_done() {
        let span = chunks.next(rest, &Limits::REQUEST).ok()??;
        if span.kind == Kind::Data {
            data.extend_from_slice(&rest[..span.length]);
        }
        rest = &rest[span.length..];
    }
    head.set_length(data.len());
    Some(Slice::from(&data[..]))
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

/// A request on its way to a worker.
#[derive(Debug)]
pub struct Request {
    /// The id of the request.
    pub id: RequestId,
    /// The address of its client.
    pub peer: Peer,
    /// The time of its receipt, in microseconds since the Unix epoch.
    pub at_us: i64,
    /// Its content.
    pub payload: Payload,
}
