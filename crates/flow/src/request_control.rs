//! Control messages to a worker about a request in flight.

use event::StreamId;
use exchange::Slice;

/// One control message about a request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestControl {
    /// Pause the reply: the client accepts no more of it for now.
    Pause,
    /// Resume the reply.
    Resume,
    /// The reply is no longer needed.
    Abandoned,
    /// A part of the request body, and its length in bytes without framing.
    Body(Slice, usize),
    /// The request body is complete.
    BodyEnd,
    /// Forward the rest of the reply body directly to this stream of the client.
    Splice(StreamId),
}
