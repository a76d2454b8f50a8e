//! What shards and workers say to each other of streams: whose each is, and what is heard on it.

use event::{Data, DeadlineName, Reason};
use exchange::WorkerId;

use crate::programs::Pipe;
use crate::servers::LinkId;

/// What a stream to a worker is for. Shards keep it and give it back, and look at none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Requests and their replies, over a connection.
    Link(LinkId),
    /// One of the pipes of a program.
    Pipe(WorkerId, Pipe),
    /// To see whether it accepts connections.
    Trial(WorkerId),
}

/// What is heard on it, in the words of the loop.
#[derive(Debug)]
pub(crate) enum Heard<'h, 'd> {
    Connected,
    Data(&'h mut Data<'d>),
    Eof,
    Drained,
    /// So many bytes went on unseen, and whether that was all.
    Relayed(u64, bool),
    Deadline(DeadlineName),
    Closed(Reason),
}
