//! The limit on the memory of the whole daemon.
//!
//! ```text
//!            held > max                    still over at the end of a later turn: a shard closes its
//!   Within ─────────────▶ Over ──────────  connections that hold most, then rejects its requests that
//!          ◀─────────────    new requests  have waited longest, until held ≤ low
//!            held ≤ low      are rejected
//! ```
//!
//! The blocks themselves count the bytes that are held (`block::Account`). Listeners count the bytes of HTTP bodies
//! that are buffered completely. Each shard publishes its count once per turn.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use block::Account;

/// A limit that all shards share. The values that they read may be one turn old.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    account: Account,
    max: AtomicUsize,
    over: AtomicBool,
    exceeded: AtomicU64,
}

/// The result of comparing the memory in use with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitCheck {
    Within,
    /// The limit is exceeded since this check.
    Entered,
    /// The limit was already exceeded before.
    Over,
    /// The limit is no longer exceeded since this check.
    Left,
}

impl MemoryLimit {
    /// Creates a limit of `max` bytes for the account of this thread.
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

    /// Returns the lower threshold. Once the limit was exceeded, the use must fall to this value before requests are
    /// accepted again. Otherwise requests would be rejected and accepted alternately.
    pub(crate) fn low(&self) -> usize {
        let max = self.max();
        max - max / 16
    }

    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// Whether the last check found the limit exceeded.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns how often the limit was exceeded.
    pub(crate) fn exceeded(&self) -> u64 {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Compares the memory in use with the limit. Only one shard observes a change of state.
    pub(crate) fn check(&self, held: usize) -> LimitCheck {
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
            assert_eq!(limit.check(held), look, "{held}");
        }
        assert_eq!(limit.exceeded(), 2);
        limit.set_max(20_000);
        assert_eq!(limit.check(9999), LimitCheck::Left, "another limit holds at once");
    }
}
