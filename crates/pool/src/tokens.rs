//! A worker's slots, shared by all shards: the pool's only impurity.
//!
//! One atomic word a worker: how many tokens are free, and whether it is *closed*. While it is open
//! any shard takes a token and gives it back with one compare-and-swap. A shard that finds none
//! sends its request to the pool's home. Home takes a token or, in the same step, closes the word:
//! from then on every token that is given back travels home by mail, so those who wait there
//! are served in their order and nobody overtakes them. When nobody waits any more, home opens it again.
//!
//! *Closed* says that no token is free: it is set only when none is, and until it is opened none
//! is added.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

const CLOSED: u64 = 1 << 63;

/// The tokens of one worker.
#[derive(Debug)]
// Alone in what a processor fetches at once, or the words of other workers would be slow with it.
#[repr(align(64))]
pub struct Tokens(AtomicU64);

/// What became of a token that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a token that nobody mails home is lost"]
pub enum Released {
    /// Anybody may take it.
    Free,
    /// It is still in the hands of whoever gave it, who mails it home.
    MailHome,
}

impl Tokens {
    /// An open word with so many free tokens.
    #[must_use]
    pub fn new(free: u32) -> Self {
        Self(AtomicU64::new(u64::from(free)))
    }

    /// Takes a token; false when none is free or the word is closed: then home decides.
    pub fn take(&self) -> bool {
        self.change(|word| (word & CLOSED == 0 && word > 0).then(|| word - 1)).is_some()
    }

    /// Home takes a token; when none is free the word is closed in the same step.
    pub fn take_or_close(&self) -> bool {
        let before = self.change(|word| Some(if word & !CLOSED > 0 { word - 1 } else { CLOSED }));
        before.is_some_and(|word| word & !CLOSED > 0)
    }

    /// Gives a token back.
    pub fn release(&self) -> Released {
        match self.change(|word| (word & CLOSED == 0).then(|| word + 1)) {
            Some(_) => Released::Free,
            None => Released::MailHome,
        }
    }

    /// Home opens the word and puts the tokens in that it has left.
    pub fn open(&self, left: u32) {
        self.change(|word| Some((word & !CLOSED) + u64::from(left)));
    }

    /// Whether home has closed it, and how many tokens are free.
    #[must_use]
    pub fn look(&self) -> (bool, u32) {
        let word = self.0.load(Ordering::Relaxed);
        (word & CLOSED != 0, u32::try_from(word & !CLOSED).unwrap_or(u32::MAX))
    }

    /// Replaces the word; gives what it was, or nothing when it was to stay.
    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        // Acquire and release: what the last holder of a token wrote is seen by the next.
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
        assert_eq!(tokens.release(), Released::MailHome);
        assert!(!tokens.take());
        tokens.open(1);
        assert_eq!(tokens.look(), (false, 1));
        assert_eq!(tokens.release(), Released::Free);
        assert!(tokens.take() && tokens.take() && !tokens.take());
    }
}

/// Every interleaving of two shards and a home: `RUSTFLAGS="--cfg loom"`.
#[cfg(all(test, loom))]
mod proof;
