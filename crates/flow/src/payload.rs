//! What a request carries from its client to the worker that gets it, written for no worker yet.

use exchange::{Peer, RequestId, Slice};

use wire::http1::{Body, BodyKind, Kind, Limits};

use crate::http_request::HttpRequest;
use crate::request_shape::RequestShape;

/// What was asked.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes, without what marks their ends.
    Frame(Slice),
    /// A message of HTTP: its head, and what has come of its body, framed as the head says.
    Http(HttpRequest, Slice),
}

/// Which way it crosses between two shards, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    Leaves,
    Arrives,
}

impl Payload {
    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        match self {
            Self::Frame(body) => body.held(),
            Self::Http(request, body) => request.held() + body.held(),
        }
    }

    /// It goes to another shard, or has come from one.
    pub fn cross(&self, crossing: Crossed) {
        match (self, crossing) {
            (Self::Frame(_), _) => {}
            (Self::Http(request, _), Crossed::Leaves) => request.leave(),
            (Self::Http(request, _), Crossed::Arrives) => request.arrive(),
        }
    }

    /// The same in memory of its own size.
    pub fn compact(self) -> Self {
        match self {
            Self::Frame(body) => Self::Frame(body.compact()),
            Self::Http(request, body) => Self::Http(request.compact(), body.compact()),
        }
    }
}

/// Why a request cannot go on to workers that take others.
const NO_MESSAGE: &str = "it is a frame, and goes on to a pool that takes messages of HTTP only";
const NOT_WHOLE: &str =
    "its body is still coming, and goes on to a pool that takes a whole one only";
const WITH_BODY: &str = "a question has no body";

impl Payload {
    /// The same for workers that take requests of this shape, where it was submitted to others. `more`: its
    /// body is still coming.
    ///
    /// # Errors
    /// When there is nothing that they could be given; the text says why.
    pub fn fitted(self, shape: &RequestShape, more: bool) -> Result<Self, &'static str> {
        let (mut request, body) = match self {
            Self::Http(request, body) => (request, body),
            Self::Frame(_) if *shape == RequestShape::Messages => return Err(NO_MESSAGE),
            Self::Frame(frame) => return Ok(Self::Frame(frame)),
        };
        if *shape == RequestShape::Messages {
            request.head_mut().become_whole();
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

/// A body without its chunks. None: it is not whole.
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
    head.give_length(data.len());
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

/// A request as a worker is given it.
#[derive(Debug)]
pub struct Request {
    pub id: RequestId,
    pub peer: Peer,
    /// Microseconds since the Unix epoch at its receipt.
    pub at_us: i64,
    pub payload: Payload,
}
