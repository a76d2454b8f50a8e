//! Counted parts of filled blocks.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::{Block, class};

/// A part of a filled block. Cloning counts; the bytes never change; any thread may hold it.
#[derive(Clone, Default)]
pub struct Slice {
    bytes: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Slice {
    pub(crate) fn of_block(bytes: Arc<[u8]>, end: usize) -> Self {
        Self { bytes, start: 0, end }
    }

    /// A slice that holds a copy of `bytes` in a block of their size.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::default() } else { Block::copy_of(bytes).freeze() }
    }

    /// A part of this slice, by positions within it.
    ///
    /// # Panics
    /// When the range does not lie within the slice.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "a part lies within its slice"
        );
        Self {
            bytes: Arc::clone(&self.bytes),
            start: self.start + range.start,
            end: self.start + range.end,
        }
    }

    /// Takes the first `count` bytes off and returns them.
    ///
    /// # Panics
    /// When `count` exceeds the length.
    #[must_use]
    pub fn split_to(&mut self, count: usize) -> Self {
        let front = self.slice(0..count);
        self.start += count;
        front
    }

    /// Forgets the first `count` bytes.
    ///
    /// # Panics
    /// When `count` exceeds the length.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "only bytes of the slice can be passed");
        self.start += count;
    }

    /// Bytes of memory that this slice keeps alive: the capacity of its whole block.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// The same bytes in a block of their own size when they fill less than half of this one or
    /// share it. What waits is compacted first, so that what a queue holds is what it counts.
    #[must_use]
    pub fn compact(self) -> Self {
        let fits = self.held() <= class::capacity_for(self.len());
        if fits && Arc::strong_count(&self.bytes) == 1 { self } else { Self::copy_of(&self) }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        class::give_back(&mut self.bytes);
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Self {
        Self::copy_of(bytes)
    }
}

impl From<&str> for Slice {
    fn from(text: &str) -> Self {
        Self::copy_of(text.as_bytes())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Slice {}

impl std::fmt::Debug for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_their_block_and_see_their_own_bytes() {
        let mut whole = Slice::copy_of(b"one\ntwo\nthree");
        let one = whole.split_to(4);
        assert_eq!(&one[..], b"one\n");
        assert_eq!(&whole[..], b"two\nthree");
        assert_eq!(&whole.slice(4..9)[..], b"three");
    }

    #[test]
    fn a_thin_slice_is_compacted_and_a_full_one_is_not_copied() {
        let mut block = Block::with_capacity(64 * 1024);
        block.push(&[1; 60_000]);
        let whole = block.freeze();
        let thin = whole.slice(0..48).compact();
        assert_eq!(thin.held(), 64);
        let place = whole.as_ptr();
        assert_eq!(whole.compact().as_ptr(), place);
    }

    #[test]
    #[should_panic(expected = "a part lies within its slice")]
    fn a_part_beyond_the_end_is_refused() {
        let _ = Slice::copy_of(b"abc").slice(1..5);
    }

    #[test]
    fn slices_cross_threads() {
        let slice = Slice::copy_of(&[9; 1000]);
        let copy = slice.clone();
        let sum = std::thread::spawn(move || copy.iter().map(|&b| u32::from(b)).sum::<u32>());
        assert_eq!(sum.join().unwrap(), 9000);
        assert_eq!(slice.len(), 1000);
    }
}
