//! The connection of a shard to the others: outgoing messages, and the requests that came from other shards.
//!
//! What it depends on: ids and numbers of bytes. What it must never depend on: a pool, a session.

use std::sync::Arc;

use exchange::{PoolId, RequestId, Table};

use crate::backlog::Backlog;
use crate::shard_group::ShardGroup;
use crate::shard_message::{ShardMessage, ShardMessages};

/// The connection of one shard to the others.
pub struct ShardLink {
    group: Arc<dyn ShardGroup>,
    me: u32,
    /// Messages to each shard, sent at the end of the turn.
    out: Vec<Vec<ShardMessage>>,
    /// The local ids of requests of other shards, by shard and index there.
    from_shards: Vec<Vec<(RequestId, RequestId)>>,
    /// Local requests that are on other shards.
    pub(crate) away: u32,
    /// Which shards, including this one, submit no more requests of their clients.
    serving: Vec<bool>,
    /// The owner shard of each pool.
    homes: Table<PoolId, u32>,
}

impl std::fmt::Debug for ShardLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardLink")
            .field("me", &self.me)
            .field("away", &self.away)
            .finish_non_exhaustive()
    }
}

impl ShardLink {
    pub(crate) fn new(group: Arc<dyn ShardGroup>, me: u32) -> Self {
        let count = group.count();
        Self {
            me,
            out: (0..count).map(|_| Vec::new()).collect(),
            from_shards: vec![Vec::new(); count],
            away: 0,
            serving: vec![false; count],
            homes: group.owners(),
            group,
        }
    }

    /// The number of this shard.
    pub const fn me(&self) -> u32 {
        self.me
    }

    /// Whether new requests must be rejected because `memory_max` was exceeded.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.group.lacks_memory()
    }

    /// Reserves `bytes` in the mailbox of a shard. `false`: the mailbox is full.
    pub(crate) fn post_bytes(&self, shard: u32, bytes: usize) -> bool {
        self.group.post_bytes(shard, bytes)
    }

    /// Releases `bytes` in the mailbox of this shard, after a request was received.
    pub(crate) fn take_bytes(&self, bytes: usize) {
        self.group.take_bytes(self.me, bytes);
    }

    pub(crate) fn window(&self) -> usize {
        self.group.window()
    }

    /// The owner shard of a pool, if it is another one.
    pub(crate) fn off_shard(&self, pool: PoolId) -> Option<u32> {
        self.homes.get(pool).copied().filter(|owner| *owner != self.me)
    }

    /// The number of other shards that serve a pool, and its slots; `None` for a pool that only its owner shard serves.
    pub(crate) fn shares(&self, pool: PoolId) -> Option<(u32, Vec<Arc<pool::Tokens>>)> {
        let shard_link = u32::try_from(self.out.len() - 1).unwrap_or(u32::MAX);
        self.group.tokens(pool).map(|tokens| (shard_link, tokens))
    }

    /// Whether there is no other shard.
    pub(crate) fn is_alone(&self) -> bool {
        self.out.len() == 1
    }

    /// The free room in the queue of a pool.
    pub(crate) fn backlog(&self, pool: PoolId) -> &Backlog {
        self.group.backlog(pool)
    }

    /// The ticket for a client that starts to wait.
    pub(crate) fn ticket(&self) -> u64 {
        self.group.ticket()
    }

    /// Queues a message, which is sent at the end of the turn.
    pub fn send(&mut self, shard: u32, message: ShardMessage) {
        self.out[shard as usize].push(message);
    }

    /// Removes and returns the queued messages, each with its receiver.
    pub fn outgoing(&mut self) -> impl Iterator<Item = (u32, ShardMessages)> {
        let filled = self.out.iter_mut().zip(0..).filter(|(out, _)| !out.is_empty());
        filled.map(|(out, shard)| (shard, ShardMessages(std::mem::take(out))))
    }

    /// Registers the local id of a request of another shard.
    pub(crate) fn invite(&mut self, from: RequestId, here: RequestId) {
        let from_shards = &mut self.from_shards[from.shard() as usize];
        if from_shards.len() <= from.index() {
            from_shards.resize(from.index() + 1, (from, here));
        }
        from_shards[from.index()] = (from, here);
    }

    /// The local id of a request of another shard. The request may have ended.
    #[expect(clippy::wrong_self_convention, reason = "it is no conversion")]
    pub(crate) fn from_shard(&self, from: RequestId) -> Option<RequestId> {
        let from_shards = self.from_shards.get(from.shard() as usize)?;
        from_shards.get(from.index()).filter(|(id, _)| *id == from).map(|(_, here)| *here)
    }

    /// Announces that the clients of this shard submit no more requests.
    pub fn say_serving(&mut self) {
        self.serving[self.me as usize] = true;
        self.tell_all(|| ShardMessage::Serving);
    }

    /// Queues a message for every other shard.
    pub(crate) fn tell_all(&mut self, message: impl Fn() -> ShardMessage) {
        for (shard, out) in self.out.iter_mut().enumerate() {
            if shard != self.me as usize {
                out.push(message());
            }
        }
    }

    /// Whether [`Self::say_serving`] was called.
    pub(crate) fn has_said_serving(&self) -> bool {
        self.serving[self.me as usize]
    }

    pub(crate) fn note_serving(&mut self, shard: u32) {
        if let Some(serving) = self.serving.get_mut(shard as usize) {
            *serving = true;
        }
    }

    /// Whether the clients of no shard submit requests any more.
    pub fn all_serve(&self) -> bool {
        self.serving.iter().all(|serving| *serving)
    }
}
