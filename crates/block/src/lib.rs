#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: [`Block`], memory that is being filled, and [`Slice`], a reference-counted part of a filled block. A
//! slice may be sent to another thread. Blocks and slices take their memory from a small pool of their thread and
//! return it to that pool. What it depends on: size classes and counts. What it must never depend on: the senders and
//! readers of the bytes.
//!
//! ```text
//!   Block     0 ≤ filled ≤ capacity         one owner, grows by `advance` and `push`
//!             |=== filled ===|--- spare ---|
//!   Slice     0 ≤ start ≤ end ≤ capacity    any number of owners, never written again
//!             |---|== bytes ==|------------|
//! ```
//!
//! A slice keeps its whole block alive. [`Slice::held`] returns the size of that memory. [`Slice::compact`] copies a
//! small slice into a block of its own size, so that 48 bytes in a queue do not keep 64 KiB allocated.

mod account;
mod class;
mod counted;
mod slice;

pub use account::Account;
pub use class::{CAPACITY_MIN, CAPACITY_POOLED_MAX, publish, set_account};
pub use counted::CountedBytes;
pub use slice::Slice;

use class::Memory;
use triomphe::UniqueArc;

/// Memory that its only owner is filling.
pub struct Block {
    /// Invariant: `Some` until the block is frozen or dropped. The type guarantees a single owner, so writing does not
    /// check a reference count.
    bytes: Option<UniqueArc<Memory>>,
    filled: usize,
}

impl Block {
    /// Returns a block for at least `capacity` bytes. Its size is the smallest size class that holds them. The memory
    /// comes from the pool of this thread if the pool has a block of that class.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Some(class::obtain(capacity)), filled: 0 }
    }

    /// Like [`Self::with_capacity`], unless the size class would exceed `capacity_max`. In that case the block has
    /// exactly `capacity` bytes and is not kept for reuse.
    #[must_use]
    pub fn with_capacity_max(capacity: usize, capacity_max: usize) -> Self {
        if class::capacity_for(capacity) <= capacity_max {
            Self::with_capacity(capacity)
        } else {
            Self { bytes: Some(class::allocate(capacity)), filled: 0 }
        }
    }

    /// Returns a block that contains a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut block = Self::with_capacity(bytes.len());
        block.push(bytes);
        block
    }

    /// The total capacity in bytes, filled or not.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.all().len()
    }

    /// The number of filled bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether no bytes are filled.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The number of bytes that still fit.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.all().len() - self.filled
    }

    /// The bytes filled so far.
    #[inline]
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.all()[..self.filled]
    }

    /// The unfilled memory after the filled bytes. Bytes written here count as filled after [`Self::advance`].
    #[inline]
    pub fn spare(&mut self) -> &mut [u8] {
        let filled = self.filled;
        &mut self.all_mut()[filled..]
    }

    /// Counts `count` bytes of [`Self::spare`] as filled.
    ///
    /// # Panics
    /// If `count` exceeds [`Self::remaining`]: the caller counted bytes that do not exist.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.remaining(), "a block cannot be filled beyond its capacity");
        self.filled += count;
    }

    /// Copies as much of `bytes` as fits and returns the number of copied bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.remaining());
        self.spare()[..count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        count
    }

    /// Moves the bytes from position `start` on to the front and discards the bytes before it.
    ///
    /// # Panics
    /// If `start` exceeds the filled length.
    pub fn shift(&mut self, start: usize) {
        assert!(start <= self.filled, "only filled bytes can be shifted away");
        let filled = self.filled;
        self.all_mut().copy_within(start..filled, 0);
        self.filled -= start;
    }

    /// Discards the filled bytes and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Finishes the filling. From now on the bytes can be shared and are never written again.
    #[must_use]
    pub fn freeze(mut self) -> Slice {
        let bytes = self.bytes.take();
        bytes.map_or_else(Slice::default, |bytes| Slice::from_block(bytes.shareable(), self.filled))
    }

    #[inline]
    fn all(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| &bytes.slice)
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().map_or(&mut [], |bytes| &mut bytes.slice)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            class::recycle(bytes);
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("filled", &self.filled)
            .field("capacity", &self.capacity())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_block_takes_no_more_and_says_how_much_it_took() {
        let mut block = Block::with_capacity(1);
        let room = block.capacity();
        assert_eq!(block.push(&vec![7; room + 5]), room);
        assert_eq!(block.push(b"x"), 0);
        assert_eq!(block.remaining(), 0);
    }

    #[test]
    fn a_block_within_a_limit_is_of_its_class_or_no_longer_than_asked_for() {
        assert_eq!(Block::with_capacity_max(1000, 1024).capacity(), 1024);
        assert_eq!(Block::with_capacity_max(1000, 1023).capacity(), 1000);
        assert_eq!(Block::with_capacity_max(70_000, 100_000).capacity(), 70_000);
    }

    #[test]
    fn shifting_keeps_the_rest_in_order() {
        let mut block = Block::copy_of(b"abcdef");
        block.shift(4);
        assert_eq!(block.filled(), b"ef");
        block.push(b"gh");
        assert_eq!(block.filled(), b"efgh");
    }

    #[test]
    fn memory_comes_back_to_the_thread_that_dropped_the_last_owner() {
        let first = Block::with_capacity(1000);
        let place = first.filled().as_ptr();
        drop(first.freeze());
        let again = Block::with_capacity(1000);
        assert_eq!(again.filled().as_ptr(), place);
    }
}
