//! Events on the streams of workers.

use event::{Data, DeadlineName, Reason};

/// An event of the loop on a stream of a worker.
#[derive(Debug)]
pub enum StreamEvent<'h, 'd> {
    /// The connection is established.
    Connected,
    /// Bytes were received.
    Data(&'h mut Data<'d>),
    /// The peer has closed its direction.
    Eof,
    /// The buffered output has fallen to the low-water mark.
    Drained,
    /// Bytes were forwarded directly to another stream. `true`: the forwarding has ended.
    Relayed(u64, bool),
    /// A deadline of the stream has passed.
    Deadline(DeadlineName),
    /// The stream is closed, for this reason.
    Closed(Reason),
}
