//! Reuse of sets: a small pool for each thread, so that a steady load allocates no memory.

use std::cell::RefCell;

use crate::Fields;
use crate::set::Memory;

/// The maximum number of sets in the pool of a thread.
pub const POOLED_SETS_MAX: usize = 64;
/// The maximum capacity of a pooled set, in fields.
pub const POOLED_FIELDS_MAX: usize = 256;
/// The maximum capacity of a pooled set, in bytes.
pub const POOLED_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    static POOL: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

impl Fields {
    /// Creates an empty set like [`Self::new`], with memory from the pool of this thread, if there is any.
    /// [`Self::give_back`] returns memory to the pool.
    #[must_use]
    pub fn pooled() -> Self {
        Self::new().with_kept_memory()
    }

    /// Creates an empty set of header fields like [`Self::headers`], with memory from the pool of this thread, if there
    /// is any.
    #[must_use]
    pub fn pooled_headers() -> Self {
        Self::headers().with_kept_memory()
    }

    fn with_kept_memory(mut self) -> Self {
        if let Some(memory) = kept() {
            self.set_memory(memory);
        }
        self
    }

    /// Returns the memory to the pool of this thread, for the next set. Memory beyond [`POOLED_FIELDS_MAX`] and
    /// [`POOLED_BYTES_MAX`], and sets beyond [`POOLED_SETS_MAX`], are freed. An adopted block is released immediately.
    pub fn give_back(mut self) {
        self.clear();
        self.shrink_to(POOLED_FIELDS_MAX, POOLED_BYTES_MAX);
        let memory = self.take_memory();
        // A thread that is ending no longer has a pool. In this case the memory is freed.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < POOLED_SETS_MAX {
                pool.push(memory);
            }
        });
    }
}

fn kept() -> Option<Memory> {
    POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_empty_and_without_habits() {
        let mut set = Fields::headers();
        set.append("Host", "x").unwrap();
        let held = set.bytes_held();
        set.give_back();
        let set = Fields::pooled();
        assert_eq!((set.len(), set.bytes_held()), (0, held));
        assert_eq!(set.get("host"), None);
        assert_eq!(set.case(), crate::Case::Exact);
        set.give_back();
        assert_eq!(Fields::pooled_headers().bytes_held(), held);
    }

    #[test]
    fn the_pool_keeps_little() {
        let large = |_| {
            let mut set = Fields::with_capacity(10 * POOLED_FIELDS_MAX, 10 * POOLED_BYTES_MAX);
            set.append("a", "b").unwrap();
            set
        };
        let sets: Vec<_> = (0..2 * POOLED_SETS_MAX).map(large).collect();
        sets.into_iter().for_each(Fields::give_back);
        let with = |memory| {
            let mut set = Fields::new();
            set.set_memory(memory);
            set
        };
        let kept: Vec<_> = std::iter::from_fn(kept).map(with).collect();
        assert_eq!(kept.len(), POOLED_SETS_MAX);
        let most = POOLED_BYTES_MAX + 16 * POOLED_FIELDS_MAX;
        assert!(kept.iter().all(|set| set.bytes_held() <= most));
    }
}
