//! What comes of a request, on its way to its client.

use std::sync::Arc;

use event::StreamId;
use exchange::{Outcome, PoolId, Slice};

use crate::page::Page;
use crate::plain_reply::PlainReply;
use crate::reply_head::Carried;

/// What goes to a client.
#[derive(Debug)]
pub enum ReplyEvent {
    /// The head of its reply, before the parts.
    Head(Carried),
    /// How the outcome behind it is told over HTTP.
    Page(Arc<Page>),
    /// How a reply behind it is told over HTTP that has no head of its own.
    PlainReply(PlainReply),
    /// Whether more of its body is wanted now.
    BodyWanted(bool),
    /// Much of its reply is still to come on this stream. It may say that it takes that unseen.
    SpliceOffer(StreamId),
    /// Some bytes of it went there unseen, and whether those were all that do.
    Spliced(bool),
    /// A part of its reply; more comes.
    Part(Slice),
    /// No more of it comes, though its worker still listens: the end of one direction of a tunnel.
    ReplyEnd,
    /// The outcome. An empty reply behind parts adds nothing to them.
    End(Outcome),
    /// What its own program, of this pool, says unasked. It belongs to no request.
    Unsolicited(PoolId, Slice),
    /// Its own program has exited well: nothing more comes, and nothing is to be said of it.
    Finished,
}
