//! Messages between shards.
//!
//! ```text
//!   client's shard                               owner shard of the pool
//!   exchange, Away ──Request, Word, Cancel,──▶   exchange of the client `OffShard`
//!                    Abandon, Taken
//!                  ◀──ReplyEvent, Taken─────────
//! ```
//!
//! What it depends on: ids and numbers of bytes. What it must never depend on: a pool, a session.

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

/// The maximum total size of requests in the mailbox of a shard, in bytes.
pub const MAIL_BYTES_MAX: usize = 64 << 20;

/// The maximum number of requests of one shard that are on other shards.
pub(crate) const AWAY_MAX: u32 = 65_536;

/// A request on its way to the owner shard of its pool.
#[derive(Debug)]
pub struct ForwardedRequest {
    /// Its id on the shard of its client.
    pub(crate) from: RequestId,
    pub(crate) pool: PoolId,
    pub(crate) peer: Peer,
    pub(crate) at_us: i64,
    pub(crate) stamps: Stamps,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) session: Option<SessionId>,
    /// Its access log entry. The owner shard writes the line.
    pub(crate) log_entry: Option<Box<AccessEntry>>,
    pub(crate) payload: Payload,
    pub(crate) meta: RequestMeta,
    /// The affinity target that the client's shard has read, and the workers that failed the request there.
    pub(crate) named: Option<u64>,
    pub(crate) knows: Option<u64>,
    pub(crate) failed: Failed,
}

/// One message to another shard.
#[derive(Debug)]
pub enum ShardMessage {
    /// A request, to the owner shard of its pool.
    Request(Box<ForwardedRequest>),
    /// A control message for a request, by its id on the client's shard.
    Control(RequestId, RequestControl),
    /// The client cancels a request, by its id on the client's shard.
    Cancel(RequestId),
    /// The reply to a request is no longer needed, for this cause. The client may have received another response.
    Abandon(RequestId, Cause, Option<Rejected>),
    /// An event for the client of a request, by its id on the client's shard.
    ReplyEvent(RequestId, ReplyEvent),
    /// An unsolicited message of a connection's own program.
    Unsolicited(SessionId, PoolId, Slice),
    /// A connection's own program has exited with code 0.
    Finished(SessionId),
    /// The session has consumed this many bytes of unsolicited messages.
    Consumed(SessionId, PoolId, usize),
    /// A message of a program to all clients of its pool.
    Announced(PoolId, Slice),
    /// Pauses (`true`) or resumes the output of a connection's own program.
    PauseProgram(SessionId, PoolId, bool),
    /// The receiver has consumed this many bytes of parts of a request or reply, in either direction. The id is that on
    /// the client's shard.
    PartsConsumed(RequestId, usize),
    /// A connection is closed that may have its own program in this pool.
    Left(SessionId, PoolId),
    /// The clients of the sending shard submit no more requests.
    Serving,
    /// Returns a slot of a worker to the owner shard of its pool.
    Token(PoolId, WorkerIndex),
    /// The owner shard of a pool publishes which workers serve.
    Update(PoolId, Arc<pool::PoolUpdate>),
    /// A member shard could not deliver a request to a worker.
    Unreached(PoolId, WorkerId),
    /// An idle connection to a worker must be closed, so that another shard can open one.
    Spare(PoolId, WorkerIndex),
    /// The outcome of a request that a member shard sent to a worker.
    Judged {
        /// The pool.
        pool: PoolId,
        /// The worker.
        worker: WorkerId,
        /// Whether the request succeeded.
        good: bool,
        /// The time until the worker began its reply.
        took: Duration,
    },
    /// Acknowledges a command of an operator when all shards have dropped it. The effects of the command were sent
    /// before.
    Barrier(Barrier),
    /// Pools of the sending shard have room again.
    Room,
    /// The sending shard has stopped serving this pool and needs nothing more from the owner shard.
    Ended(PoolId),
}

impl ShardMessage {
    /// The pool of a message that must be dropped if the pool no longer exists.
    pub fn pool(&self) -> Option<PoolId> {
        match self {
            Self::Request(passed) => Some(passed.pool),
            Self::PauseProgram(_, pool, _)
            | Self::Consumed(_, pool, _)
            | Self::Left(_, pool)
            | Self::Token(pool, _)
            | Self::Update(pool, _)
            | Self::Unreached(pool, _)
            | Self::Spare(pool, _)
            | Self::Judged { pool, .. }
            | Self::Ended(pool) => Some(*pool),
            // In these the pool is only compared, or found through the request.
            Self::Unsolicited(..)
            | Self::Announced(..)
            | Self::Control(..)
            | Self::Cancel(_)
            | Self::Abandon(..)
            | Self::ReplyEvent(..)
            | Self::Finished(_)
            | Self::PartsConsumed(..)
            | Self::Serving
            | Self::Barrier(_)
            | Self::Room => None,
        }
    }
}

/// The messages of one turn to one shard, in order.
#[derive(Debug)]
pub struct ShardMessages(pub Vec<ShardMessage>);
