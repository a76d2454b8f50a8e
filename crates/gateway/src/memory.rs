//! The limit on the memory of the whole daemon.
//!
//! ```text
//!            held > max                    still over at the end of a later turn: a shard closes its
//!   Within ─────────────▶ Over ──────────  connections that hold most, then rejects its requests that
//!          ◀─────────────    new requests  have waited longest, until held ≤ low
//!            held ≤ low      are rejected
//! ```
//!
//! What is held is counted by the blocks themselves (`block::Account`), and what bodies of HTTP that are
//! taken whole hold by their listeners. Each shard publishes its count once a turn.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use block::Account;

/// A shared limit. All shards look at it; what they see may be a turn old.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    account: Account,
    max: AtomicUsize,
    over: AtomicBool,
    exceeded: AtomicU64,
}

/// What a look at the limit shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitCheck {
    Within,
    /// It is exceeded since this look.
    Entered,
    /// It was exceeded before.
    Over,
    /// It is no longer exceeded since this look.
    Left,
}

impl MemoryLimit {
    /// What the threads of this one's account hold, at most `max`.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            account: Account::current(),
            max: AtomicUsize::new(max),
            over: AtomicBool::new(false),
            exceeded: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    pub(crate) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Once it was exceeded, so little must be held for it to be kept again: requests are not to be
    /// rejected and taken by turns.
    pub(crate) fn low(&self) -> usize {
        let max = self.max();
        max - max / 16
    }

    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// Whether it is exceeded, as far as was found out.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// How often it was exceeded.
    pub(crate) fn exceeded(&self) -> u64 {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Compares what is held with the limit. Of all shards one sees the change.
    pub(crate) fn look(&self, held: usize) -> LimitCheck {
        let over = self.is_over();
        if held > self.max() {
            if over || self.over.swap(true, Ordering::Relaxed) {
                return LimitCheck::Over;
            }
            self.exceeded.fetch_add(1, Ordering::Relaxed);
            return LimitCheck::Entered;
        }
        match over {
            false => LimitCheck::Within,
            true if held > self.low() => LimitCheck::Over,
            true if self.over.swap(false, Ordering::Relaxed) => LimitCheck::Left,
            true => LimitCheck::Within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_exceeded_above_the_limit_and_kept_again_below_a_sixteenth_less() {
        let limit = MemoryLimit::new(1600);
        for (held, look) in [
            (1600, LimitCheck::Within),
            (1601, LimitCheck::Entered),
            (1601, LimitCheck::Over),
            (1501, LimitCheck::Over),
            (1500, LimitCheck::Left),
            (1600, LimitCheck::Within),
            (9999, LimitCheck::Entered),
        ] {
            assert_eq!(limit.look(held), look, "{held}");
        }
        assert_eq!(limit.exceeded(), 2);
        limit.set_max(20_000);
        assert_eq!(limit.look(9999), LimitCheck::Left, "another limit holds at once");
    }
}
