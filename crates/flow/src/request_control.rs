//! What a worker is told of a request that it has, besides the request.

use event::StreamId;
use exchange::Slice;

/// What a worker is told of a request that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestControl {
    /// Its client does not take its parts: no more of them for now.
    Pause,
    /// It does again.
    Resume,
    /// Nobody wants its reply any more.
    Abandoned,
    /// A part of its body, of which so many bytes are no framing.
    Body(Slice, usize),
    /// All of its body was given.
    BodyEnd,
    /// What its client takes as it lies goes to this stream.
    Splice(StreamId),
}
