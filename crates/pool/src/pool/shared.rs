//! A pool that several shards serve.
//!
//! One of them is its *home*: there its queue is, and all that is decided about its workers. The
//! others are *branches*: machines like it without a queue, who serve whom their home says. Each of
//! them gives a request to a worker only with a token of it in hand, so that all together keep to
//! its slots. A branch that has none gives the request back, and it goes home.
//!
//! ```text
//!   slots of a worker = tokens in its word + tokens in hands + its slots in use on all shards
//!                       + tokens on their way home
//! ```
//!
//! Tokens that are owed because a worker has fewer slots than it had are kept back as they come
//! ([`Shared::allot`]).
//!
//! A hand is empty when an event has been dealt with, unless somebody waits for what is in it.

use std::sync::Arc;

use crate::tokens::{Released, Tokens};
use crate::update::PoolUpdate;

/// What a shard holds of one worker's tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenCache {
    /// Tokens that no request has.
    pub(super) tokens: u32,
    /// At home: tokens that are too many, and kept back when they come.
    pub(super) owed: u32,
    /// There was none to be had: at home its word is closed since.
    pub(super) out: bool,
    /// It is in `touched`.
    pub(super) touched: bool,
}

/// What a pool has to do with the same pool on other shards.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) words: Vec<Arc<Tokens>>,
    /// The slots that each worker has, by place.
    pub(super) allotted: Vec<u32>,
    /// Slots of all workers, those that are owed among them.
    pub(super) slots: u64,
    pub(super) is_owner: bool,
    pub(super) caches: Vec<TokenCache>,
    /// Places whose hands may not be empty.
    pub(super) touched: Vec<u32>,
    /// What branches were told, or at a branch what it was told.
    pub(super) update: PoolUpdate,
    /// They are to be told again.
    pub(super) changed: bool,
}

impl Shared {
    pub(super) fn cache(&mut self, place: u32) -> Option<(&mut TokenCache, &Tokens)> {
        let word = self.words.get(place as usize)?;
        Some((self.caches.get_mut(place as usize)?, &**word))
    }

    /// Whether no token of this worker can be had.
    pub(super) fn is_out(&self, place: u32) -> bool {
        self.caches.get(place as usize).is_some_and(|cache| cache.out && cache.tokens == 0)
    }

    /// Sees to it that a token of this worker is in hand. False when there is none.
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

    /// A request has the token that was in hand.
    pub(super) fn spend(&mut self, place: u32) {
        if let Some((cache, _)) = self.cache(place) {
            cache.tokens = cache.tokens.checked_sub(1).expect("a token is in hand");
        }
    }

    /// A request has it no more. True when it is to be mailed home.
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
        // Where it is free now, another may be had; one that is mailed goes to those who wait.
        let mailed = word.release() == Released::MailHome;
        cache.out &= mailed;
        mailed
    }

    /// Opens the word of a place for which nobody waits here, and empties the hand. Gives how many
    /// tokens are to be mailed home.
    pub(super) fn let_go(&mut self, place: u32) -> u32 {
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
        let mailed = (0..tokens).filter(|_| word.release() == Released::MailHome).count();
        u32::try_from(mailed).expect("a hand has fewer tokens")
    }

    /// Tokens of all workers that are with requests, on whatever shard.
    pub(super) fn taken(&self) -> u64 {
        let here: u64 = self.caches.iter().map(|cache| u64::from(cache.tokens)).sum();
        let free: u64 = self.words.iter().map(|word| u64::from(word.look().1)).sum();
        self.slots.saturating_sub(free + here)
    }
}

impl Shared {
    /// The words of further places, each with so many tokens.
    pub(super) fn lengthen(&mut self, words: &[Arc<Tokens>], slots: &[u32]) {
        let before = self.words.len();
        self.words.extend(words.iter().skip(before).cloned());
        self.caches.resize(self.words.len(), TokenCache::default());
        let new = slots.iter().take(self.words.len()).skip(before);
        self.slots += new.clone().map(|&slots| u64::from(slots)).sum::<u64>();
        self.allotted.extend(new);
    }

    /// A place has so many slots. Gives how many tokens are to be put in.
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

    /// Keeps back what is too many and can be had. Where more is to come the word is closed.
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
