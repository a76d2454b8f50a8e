//! The number of bytes of memory that all blocks of a process occupy.
//!
//! Each thread counts the bytes that it allocates and frees in a thread-local number. It adds this number to a shared
//! sum when [`publish`](crate::publish) is called, when the number exceeds [`STEP`], and when the thread ends. Blocks
//! are often freed by another thread than the one that allocated them, so only the sum is meaningful. Blocks that a
//! thread keeps for reuse are not counted; each thread keeps a few MiB at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The change of a thread's own number, in bytes, at which the thread adds it to the sum.
pub(crate) const STEP: i64 = 256 << 10;

/// The default account of all threads.
static PROCESS: AtomicI64 = AtomicI64::new(0);

/// A sum of the bytes that blocks occupy.
#[derive(Clone, Debug, Default)]
pub struct Account(Option<Arc<AtomicI64>>);

impl Account {
    /// The account of the process.
    pub(crate) const PROCESS: Self = Self(None);

    /// Returns an account that is used only by threads that called [`set_account`](crate::set_account) with it. Tests
    /// that run in parallel in one process use it.
    #[must_use]
    pub fn separate() -> Self {
        Self(Some(Arc::default()))
    }

    fn sum(&self) -> &AtomicI64 {
        self.0.as_deref().unwrap_or(&PROCESS)
    }

    pub(crate) fn add(&self, bytes: i64) {
        // `Relaxed` is enough: this is only a count, and no other memory is published by it.
        self.sum().fetch_add(bytes, Ordering::Relaxed);
    }

    /// The number of bytes of memory that blocks occupy, as far as their threads have published it.
    #[must_use]
    pub fn held(&self) -> usize {
        usize::try_from(self.sum().load(Ordering::Relaxed)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, publish, set_account};

    #[test]
    fn blocks_are_counted_from_their_making_to_the_end_of_their_last_slice() {
        let account = Account::separate();
        set_account(&account);
        let held = || {
            publish();
            account.held()
        };
        let small = Block::with_capacity(100);
        assert_eq!(held(), 256);
        let large = Block::with_capacity_max(100_000, 100_000).freeze();
        assert_eq!(held(), 256 + 100_000);
        let part = large.clone();
        drop(large);
        assert_eq!(held(), 256 + 100_000, "a slice keeps its whole block");
        drop(part);
        drop(small);
        assert_eq!(held(), 0);
        // This block comes from the pool of this thread.
        let again = Block::with_capacity(100);
        assert_eq!(held(), 256);
        drop(again);
        assert_eq!(held(), 0);
    }

    #[test]
    fn what_one_thread_makes_and_another_frees_is_nothing() {
        let account = Account::separate();
        let theirs = account.clone();
        let made = std::thread::spawn(move || {
            set_account(&theirs);
            (0..100).map(|_| Block::with_capacity(1000).freeze()).collect::<Vec<_>>()
        });
        let made = made.join().unwrap();
        assert_eq!(account.held(), 100 * 1024, "a thread that ends has published");
        let theirs = account.clone();
        let freed = std::thread::spawn(move || {
            set_account(&theirs);
            drop(made);
        });
        freed.join().unwrap();
        assert_eq!(account.held(), 0);
    }

    #[test]
    fn slices_that_two_threads_drop_at_once_are_counted_once() {
        let account = Account::separate();
        for _ in 0..200 {
            let theirs = account.clone();
            set_account(&account);
            let one = Block::with_capacity(5000).freeze();
            let other = one.clone();
            let thread = std::thread::spawn(move || {
                set_account(&theirs);
                drop(other);
            });
            drop(one);
            thread.join().unwrap();
            publish();
            assert_eq!(account.held(), 0);
        }
    }
}
