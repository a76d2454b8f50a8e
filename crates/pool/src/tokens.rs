//! The slots of a worker, shared by all shards. This is the only shared state of a pool.
//!
//! Each worker has one atomic word: the number of free tokens, and whether the word is *closed*. While it is open, any
//! shard takes a token or returns one with a compare-and-swap. A shard that finds no token sends its request to the
//! owner shard of the pool. The owner shard takes a token or, in the same step, closes the word. From then on every
//! returned token is sent to the owner shard as mail, so the requests that wait there are served in their order and no
//! request overtakes them. When no request waits any more, the owner shard opens the word again.
//!
//! *Closed* implies that no token is free: the word is closed only when there is none, and no token is added until it
//! is opened.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

const CLOSED: u64 = 1 << 63;

/// The tokens of one worker.
#[derive(Debug)]
// Each word has a cache line of its own. Otherwise the words of other workers would be slow too (false sharing).
#[repr(align(64))]
pub struct Tokens(AtomicU64);

/// The result of returning a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a token that nobody mails home is lost"]
pub enum Released {
    /// The token is in the word, and any shard may take it.
    Free,
    /// The token is still held by the caller, which must send it to the owner shard.
    SendToOwner,
}

impl Tokens {
    /// An open word with this number of free tokens.
    #[must_use]
    pub fn new(free: u32) -> Self {
        Self(AtomicU64::new(u64::from(free)))
    }

    /// Takes a token. Returns `false` if none is free or the word is closed; then the owner shard decides.
    pub fn take(&self) -> bool {
        self.change(|word| (word & CLOSED == 0 && word > 0).then(|| word - 1)).is_some()
    }

    /// The owner shard takes a token. If none is free, the word is closed in the same step.
    pub fn take_or_close(&self) -> bool {
        let before = self.change(|word| Some(if word & !CLOSED > 0 { word - 1 } else { CLOSED }));
        before.is_some_and(|word| word & !CLOSED > 0)
    }

    /// Returns a token.
    pub fn release(&self) -> Released {
        match self.change(|word| (word & CLOSED == 0).then(|| word + 1)) {
            Some(_) => Released::Free,
            None => Released::SendToOwner,
        }
    }

    /// The owner shard opens the word and adds the tokens that it has left.
    pub fn open(&self, left: u32) {
        self.change(|word| Some((word & !CLOSED) + u64::from(left)));
    }

    /// Whether the owner shard has closed the word, and the number of free tokens.
    #[must_use]
    pub fn look(&self) -> (bool, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (word & CLOSED != 0, u32::try_from(word & !CLOSED).unwrap_or(u32::MAX))
    }

    /// Replaces the word. Returns the previous value, or `None` if it was not replaced.
    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        // Acquire and release: everything that the last holder of a token wrote is visible to the next holder.
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_word_gives_nothing_and_takes_nothing_until_it_is_opened() {
        let tokens = Tokens::new(2);
        assert!(tokens.take() && tokens.take_or_close());
        assert!(!tokens.take());
        assert_eq!(tokens.look(), (false, 0), "only home closes");
        assert!(!tokens.take_or_close() && !tokens.take_or_close());
        assert_eq!(tokens.look(), (true, 0));
        assert_eq!(tokens.release(), Released::SendToOwner);
        assert!(!tokens.take());
        tokens.open(1);
        assert_eq!(tokens.look(), (false, 1));
        assert_eq!(tokens.release(), Released::Free);
        assert!(tokens.take() && tokens.take() && !tokens.take());
    }
}

/// Every interleaving of two shards and an owner shard: `RUSTFLAGS="--cfg loom"`.
#[cfg(all(test, loom))]
mod proof;
