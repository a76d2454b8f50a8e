//! A pool that several shards serve.
//!
//! One of them is the *owner shard*: it has the queue and makes all decisions about the workers. The others are *member
//! shards*: the same state machine without a queue, which follows the updates of the owner shard. Each shard gives a
//! request to a worker only with a token of that worker in its cache, so that all shards together respect the worker's
//! slots. A member shard without a token returns the request, and the request is sent to the owner shard.
//!
//! ```text
//!   slots of a worker = tokens in its word + tokens in caches + its slots in use on all shards
//!                       + tokens on their way to the owner shard
//! ```
//!
//! If a worker has fewer slots than before, the surplus tokens are owed. They are withdrawn as they return
//! ([`Shared::allot`]).
//!
//! A cache is empty after an event was handled, unless a request waits for its tokens.

use std::sync::Arc;

use crate::tokens::{Released, Tokens};
use crate::update::PoolUpdate;

/// The tokens of one worker that a shard holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenCache {
    /// Tokens that no request uses.
    pub(super) tokens: u32,
    /// On the owner shard: surplus tokens, which are withdrawn when they return.
    pub(super) owed: u32,
    /// No token was available. On the owner shard, the word has been closed since.
    pub(super) out: bool,
    /// Whether the place is in `touched`.
    pub(super) touched: bool,
}

/// The state that a pool needs to share its workers with the same pool on other shards.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) words: Vec<Arc<Tokens>>,
    /// The slots of each worker, by place.
    pub(super) allotted: Vec<u32>,
    /// The slots of all workers, including those that are owed.
    pub(super) slots: u64,
    pub(super) is_owner: bool,
    pub(super) caches: Vec<TokenCache>,
    /// Places whose caches may not be empty.
    pub(super) touched: Vec<u32>,
    /// The last update that was sent to the member shards; on a member shard, the last one received.
    pub(super) update: PoolUpdate,
    /// Whether the member shards need a new update.
    pub(super) changed: bool,
}

impl Shared {
    pub(super) fn cache(&mut self, place: u32) -> Option<(&mut TokenCache, &Tokens)> {
        let word = self.words.get(place as usize)?;
        Some((self.caches.get_mut(place as usize)?, &**word))
    }

    /// Whether no token of this worker is available.
    pub(super) fn is_out(&self, place: u32) -> bool {
        self.caches.get(place as usize).is_some_and(|cache| cache.out && cache.tokens == 0)
    }

    /// Ensures that a token of this worker is in the cache. Returns `false` if none is available.
    pub(super) fn secure(&mut self, place: u32) -> bool {
        let is_owner = self.is_owner;
        let Some((cache, word)) = self.cache(place) else { return true };
        if cache.tokens > 0 {
            return true;
        }
        if cache.out {
            return false;
        }
        let taken = if is_owner { word.take_or_close() } else { word.take() };
        cache.tokens = u32::from(taken);
        cache.out = !taken;
        if !std::mem::replace(&mut cache.touched, true) {
            self.touched.push(place);
        }
        taken
    }

    /// A request takes the token from the cache.
    pub(super) fn spend(&mut self, place: u32) {
        if let Some((cache, _)) = self.cache(place) {
            cache.tokens = cache.tokens.checked_sub(1).expect("a token is in hand");
        }
    }

    /// A request releases its token. Returns `true` if the token must be sent to the owner shard.
    pub(super) fn give_back(&mut self, place: u32) -> bool {
        let is_owner = self.is_owner;
        let Some((cache, word)) = self.cache(place) else { return false };
        if is_owner && cache.owed > 0 {
            cache.owed -= 1;
            self.slots -= 1;
            return false;
        }
        if is_owner && cache.out {
            cache.tokens += 1;
            return false;
        }
        // If the token is free again, another one may be available. A token that is sent goes to the requests that wait
        // on the owner shard.
        let mailed = word.release() == Released::SendToOwner;
        cache.out &= mailed;
        mailed
    }

    /// Opens the word of a place that no request waits for on this shard, and empties the cache. Returns the number of
    /// tokens that must be sent to the owner shard.
    pub(super) fn release_cached(&mut self, place: u32) -> u32 {
        let is_owner = self.is_owner;
        let Some((cache, word)) = self.cache(place) else { return 0 };
        if cache.owed > 0 {
            return 0;
        }
        let tokens = std::mem::take(&mut cache.tokens);
        if is_owner && cache.out {
            cache.out = false;
            word.open(tokens);
            return 0;
        }
        let mailed = (0..tokens).filter(|_| word.release() == Released::SendToOwner).count();
        u32::try_from(mailed).expect("a hand has fewer tokens")
    }

    /// The number of tokens that requests use, of all workers, on all shards.
    pub(super) fn taken(&self) -> u64 {
        let here: u64 = self.caches.iter().map(|cache| u64::from(cache.tokens)).sum();
        let free: u64 = self.words.iter().map(|word| u64::from(word.look().1)).sum();
        self.slots.saturating_sub(free + here)
    }
}

impl Shared {
    /// Adds the words of new places, each with its number of tokens.
    pub(super) fn lengthen(&mut self, words: &[Arc<Tokens>], slots: &[u32]) {
        let before = self.words.len();
        self.words.extend(words.iter().skip(before).cloned());
        self.caches.resize(self.words.len(), TokenCache::default());
        let new = slots.iter().take(self.words.len()).skip(before);
        self.slots += new.clone().map(|&slots| u64::from(slots)).sum::<u64>();
        self.allotted.extend(new);
    }

    /// Sets the number of slots of a place. Returns the number of tokens that must be added.
    pub(super) fn allot(&mut self, place: u32, slots: u32) -> u32 {
        let Some(allotted) = self.allotted.get_mut(place as usize) else { return 0 };
        let before = std::mem::replace(allotted, slots);
        let Some((cache, _)) = self.cache(place) else { return 0 };
        cache.owed += before.saturating_sub(slots);
        let reservations = cache.owed.min(slots.saturating_sub(before));
        cache.owed -= reservations;
        let more = slots.saturating_sub(before + reservations);
        self.slots += u64::from(more);
        self.collect(place);
        more
    }

    /// Withdraws surplus tokens that are available. If more must return, the word is closed.
    pub(super) fn collect(&mut self, place: u32) {
        let (mut reservations, mut is_new) = (0, false);
        if let Some((cache, word)) = self.cache(place) {
            while cache.owed > 0 {
                if cache.tokens > 0 {
                    cache.tokens -= 1;
                } else if cache.out || !word.take_or_close() {
                    cache.out = true;
                    break;
                }
                cache.owed -= 1;
                reservations += 1;
            }
            is_new = cache.out && !std::mem::replace(&mut cache.touched, true);
        }
        self.slots -= reservations;
        if is_new {
            self.touched.push(place);
        }
    }
}
