//! What shards tell workers of their streams.

use event::{Data, DeadlineName, Reason};

/// What is heard on a stream, in the words of the loop.
#[derive(Debug)]
pub enum StreamEvent<'h, 'd> {
    Connected,
    Data(&'h mut Data<'d>),
    Eof,
    Drained,
    /// So many bytes went on unseen, and whether that was all.
    Relayed(u64, bool),
    Deadline(DeadlineName),
    Closed(Reason),
}
