//! Events about a request, from the engine to the client's session.

use std::sync::Arc;

use event::StreamId;
use exchange::{Outcome, PoolId, Slice};

use crate::page::Page;
use crate::plain_reply::PlainReply;
use crate::reply_head::BoxedReplyHead;

/// One event for a client's session.
#[derive(Debug)]
pub enum ReplyEvent {
    /// The head of the reply, before its parts.
    Head(BoxedReplyHead),
    /// The HTTP response for the outcome that follows.
    Page(Arc<Page>),
    /// The HTTP status and type for the reply that follows, if it has no head.
    PlainReply(PlainReply),
    /// Whether the worker accepts more of the request body now.
    BodyWanted(bool),
    /// The rest of the reply body is long and arrives on this stream. The session may request direct forwarding with
    /// [`RequestControl::Splice`](crate::request_control::RequestControl::Splice).
    SpliceOffer(StreamId),
    /// Bytes of the reply body were forwarded directly. `true`: the forwarding has ended.
    Spliced(bool),
    /// A part of the reply. More follows.
    Part(Slice),
    /// The worker has closed its direction of a tunnel. It still reads.
    ReplyEnd,
    /// The outcome. After parts, an empty reply marks the end only.
    End(Outcome),
    /// A message of the client's own program, in this pool. It belongs to no request.
    Unsolicited(PoolId, Slice),
    /// The client's own program has exited with code 0. The session ends without an error.
    Finished,
}
