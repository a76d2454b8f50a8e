//! Sets that are used again: a small pool for each thread, so that a steady loop allocates nothing.

use std::cell::RefCell;

use crate::Fields;
use crate::set::Memory;

/// Sets that a thread keeps at most.
pub const POOLED_SETS_MAX: usize = 64;
/// Entries for which a kept set has room at most.
pub const POOLED_FIELDS_MAX: usize = 256;
/// Bytes for which a kept set has room at most.
pub const POOLED_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    static POOL: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

impl Fields {
    /// An empty set, as [`Self::new`] makes it, with the memory of one that this thread
    /// [gave back](Self::give_back), if there is one.
    #[must_use]
    pub fn pooled() -> Self {
        Self::new().with_kept_memory()
    }

    /// An empty set of header fields, as [`Self::headers`] makes it, with the memory of one that
    /// this thread gave back, if there is one.
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

    /// Gives the memory to this thread's pool, for the next set. More than
    /// [`POOLED_FIELDS_MAX`] and [`POOLED_BYTES_MAX`], or more than [`POOLED_SETS_MAX`] sets, are
    /// freed; an adopted block is let go at once.
    pub fn give_back(mut self) {
        self.clear();
        self.shrink_to(POOLED_FIELDS_MAX, POOLED_BYTES_MAX);
        let memory = self.take_memory();
        // A thread that is ending has no pool any more; then the memory is freed.
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
        set.append("Host", "x");
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
            set.append("a", "b");
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
