//! What shards tell each other.
//!
//! ```text
//!   client's shard                               home of the pool
//!   exchange, Away ──Request, Word, Cancel,──▶   exchange of the client `OffShard`
//!                    Abandon, Taken
//!                  ◀──ReplyEvent, Taken─────────
//! ```
//!
//! What it knows: ids, counts of bytes. What it must never know: a pool, a session.

use std::sync::Arc;
use std::time::Duration;

use exchange::{Cause, ListenerId, Peer, PoolId, RequestId, Slice, Stamps, WorkerId, WorkerIndex};
use pool::Failed;

use crate::barrier::Barrier;
use flow::ids::SessionId;
use flow::payload::Payload;
use flow::rejected::Rejected;
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use observe::access_log::AccessEntry;

/// Bytes of requests that may wait in the mailbox of a shard: those that other shards have sent and it has
/// not taken in.
pub const MAIL_BYTES_MAX: usize = 64 << 20;

/// Requests of one shard that may be away at once.
pub(crate) const AWAY_MAX: u32 = 65_536;

/// A request on its way to the home of its pool.
#[derive(Debug)]
pub struct ForwardedRequest {
    /// Its id at the shard of its client.
    pub from: RequestId,
    pub pool: PoolId,
    pub peer: Peer,
    pub at_us: i64,
    pub stamps: Stamps,
    pub listener: Option<ListenerId>,
    pub session: Option<SessionId>,
    /// Its line is written where it is counted.
    pub log_entry: Option<Box<AccessEntry>>,
    pub payload: Payload,
    pub meta: RequestMeta,
    /// What a branch has read of it already, and who has failed it there.
    pub named: Option<u64>,
    pub knows: Option<u64>,
    pub failed: Failed,
}

/// One thing that a shard tells another.
#[derive(Debug)]
pub enum ShardMessage {
    Request(Box<ForwardedRequest>),
    /// What a client says of a request, by its id at the client's shard.
    Word(RequestId, RequestControl),
    /// Its client takes it back.
    Cancel(RequestId),
    /// Nobody wants its reply any more. What its client was told instead, if anything.
    Abandon(RequestId, Cause, Option<Rejected>),
    /// What comes of it, for its client.
    ReplyEvent(RequestId, ReplyEvent),
    /// What a connection's own program of this pool says unasked.
    Said(SessionId, PoolId, Slice),
    /// A connection's own program has exited well.
    Finished(SessionId),
    /// So many bytes of that were taken.
    Heard(SessionId, PoolId, usize),
    /// What a program of this pool says to all its clients.
    Announced(PoolId, Slice),
    /// A connection takes nothing of what its own program of this pool says, or takes it again.
    Hush(SessionId, PoolId, bool),
    /// So many bytes of its parts were taken; named by its id at the client's shard, in both
    /// directions.
    Taken(RequestId, usize),
    /// A connection is gone, which may have a program of its own in this pool.
    Left(SessionId, PoolId),
    /// No client of that shard may ask any more.
    Serving,
    /// A token of a worker goes to the home of its pool.
    Token(PoolId, WorkerIndex),
    /// The home of a pool tells its branches who serves.
    News(PoolId, Arc<pool::News>),
    /// A branch could not bring a request to a worker, by its id at home.
    Unreached(PoolId, WorkerId),
    /// A link to a worker that rests is to go for one of another shard.
    Spare(PoolId, WorkerIndex),
    /// How a request ended that a worker was given at a branch.
    Judged {
        pool: PoolId,
        worker: WorkerId,
        good: bool,
        took: Duration,
    },
    /// Whoever gave an order is answered when all shards have let go of this; what follows from the
    /// order was told before.
    Barrier(Barrier),
    /// Pools at home there have room again.
    Room,
    /// A branch of this pool serves nobody any more, and asks nothing of its home.
    Ended(PoolId),
}

impl ShardMessage {
    /// The pool that it is about, where that may have gone by the time it is told.
    pub fn pool(&self) -> Option<PoolId> {
        match self {
            Self::Request(passed) => Some(passed.pool),
            Self::Hush(_, pool, _)
            | Self::Heard(_, pool, _)
            | Self::Left(_, pool)
            | Self::Token(pool, _)
            | Self::News(pool, _)
            | Self::Unreached(pool, _)
            | Self::Spare(pool, _)
            | Self::Judged { pool, .. }
            | Self::Ended(pool) => Some(*pool),
            // Of those it is compared only, or the request says which.
            Self::Said(..)
            | Self::Announced(..)
            | Self::Word(..)
            | Self::Cancel(_)
            | Self::Abandon(..)
            | Self::ReplyEvent(..)
            | Self::Finished(_)
            | Self::Taken(..)
            | Self::Serving
            | Self::Barrier(_)
            | Self::Room => None,
        }
    }
}

/// What one shard tells another in one turn, in its order.
#[derive(Debug)]
pub struct ShardMessages(pub Vec<ShardMessage>);
