//! The other shards, as one of them sees them: what it tells each, and which of its requests came from
//! them.
//!
//! What it knows: ids, counts of bytes. What it must never know: a pool, a session.

use std::sync::Arc;

use exchange::{PoolId, RequestId, Table};

use crate::backlog::Backlog;
use crate::shard_group::ShardGroup;
use crate::shard_message::{ShardMessage, ShardMessages};

/// What a shard has to do with others.
pub struct ShardLink {
    group: Arc<dyn ShardGroup>,
    me: u32,
    /// What is told each at the end of the turn.
    out: Vec<Vec<ShardMessage>>,
    /// Ids here of requests of other shards, by shard and by their place there.
    from_shards: Vec<Vec<(RequestId, RequestId)>>,
    /// Requests that are away.
    pub away: u32,
    /// Which shards have said that their clients may ask no more; our own as well.
    serving: Vec<bool>,
    /// The home of each pool.
    homes: Table<PoolId, u32>,
}

impl ShardLink {
    pub fn new(group: Arc<dyn ShardGroup>, me: u32) -> Self {
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

    pub const fn me(&self) -> u32 {
        self.me
    }

    /// Whether new requests are to be rejected because too much memory is held.
    pub fn lacks_memory(&self) -> bool {
        self.group.lacks_memory()
    }

    /// Counts a request of so many bytes on its way to another shard. False when there is no room.
    pub fn post_bytes(&self, shard: u32, bytes: usize) -> bool {
        self.group.post_bytes(shard, bytes)
    }

    /// A request of so many bytes has come from another shard.
    pub fn take_bytes(&self, bytes: usize) {
        self.group.take_bytes(self.me, bytes);
    }

    pub fn window(&self) -> usize {
        self.group.window()
    }

    /// The home of a pool, where that is another shard.
    pub fn off_shard(&self, pool: PoolId) -> Option<u32> {
        self.homes.get(pool).copied().filter(|home| *home != self.me)
    }

    /// How many shards serve a pool at home here besides this one, and its tokens; none for one
    /// that its home alone serves.
    pub fn shares(&self, pool: PoolId) -> Option<(u32, Vec<Arc<pool::Tokens>>)> {
        let shard_link = u32::try_from(self.out.len() - 1).unwrap_or(u32::MAX);
        self.group.tokens(pool).map(|tokens| (shard_link, tokens))
    }

    /// Whether there is no other shard.
    pub fn is_alone(&self) -> bool {
        self.out.len() == 1
    }

    /// What all shards know of the queue of a pool.
    pub fn backlog(&self, pool: PoolId) -> &Backlog {
        self.group.backlog(pool)
    }

    pub fn tell(&mut self, shard: u32, message: ShardMessage) {
        self.out[shard as usize].push(message);
    }

    /// What is to be sent to other shards, each with its shard.
    pub fn outgoing(&mut self) -> impl Iterator<Item = (u32, ShardMessages)> {
        let filled = self.out.iter_mut().zip(0..).filter(|(out, _)| !out.is_empty());
        filled.map(|(out, shard)| (shard, ShardMessages(std::mem::take(out))))
    }

    /// A request of another shard has this id here.
    pub(crate) fn invite(&mut self, from: RequestId, here: RequestId) {
        let from_shards = &mut self.from_shards[from.shard() as usize];
        if from_shards.len() <= from.index() {
            from_shards.resize(from.index() + 1, (from, here));
        }
        from_shards[from.index()] = (from, here);
    }

    /// The id here of a request of another shard; it may have ended.
    pub fn from_shard(&self, from: RequestId) -> Option<RequestId> {
        let from_shards = self.from_shards.get(from.shard() as usize)?;
        from_shards.get(from.index()).filter(|(id, _)| *id == from).map(|(_, here)| *here)
    }

    /// Our own clients may ask no more.
    pub fn say_serving(&mut self) {
        self.serving[self.me as usize] = true;
        self.tell_all(|| ShardMessage::Serving);
    }

    /// Tells every other shard.
    pub fn tell_all(&mut self, message: impl Fn() -> ShardMessage) {
        for (shard, out) in self.out.iter_mut().enumerate() {
            if shard != self.me as usize {
                out.push(message());
            }
        }
    }

    /// Whether our own clients may ask no more.
    pub(crate) fn has_said_serving(&self) -> bool {
        self.serving[self.me as usize]
    }

    pub fn note_serving(&mut self, shard: u32) {
        if let Some(serving) = self.serving.get_mut(shard as usize) {
            *serving = true;
        }
    }

    /// Whether no client of any shard may ask any more.
    pub fn all_serve(&self) -> bool {
        self.serving.iter().all(|serving| *serving)
    }
}
