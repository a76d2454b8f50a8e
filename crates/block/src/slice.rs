//! Reference-counted parts of filled blocks.

use std::ops::{Deref, Range};

use triomphe::Arc;

use crate::class;
use crate::class::Memory;

/// The maximum number of bytes that a slice stores without a block. This number fits into the space that the reference
/// to a block takes. Counting a block and returning it costs more than copying so few bytes. Short lines,
/// acknowledgements and numbers are stored this way.
const INLINE_MAX: usize = 23;

/// A part of a filled block, or up to 23 bytes without a block. Cloning increments a reference count. The bytes never
/// change. A slice can be used on any thread.
#[derive(Clone)]
pub struct Slice(Bytes);

#[derive(Clone)]
enum Bytes {
    Block { block: Arc<Memory>, start: usize, end: usize },
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
}

const _: () = assert!(size_of::<Slice>() == 32, "few bytes take no more than the place of many");

impl Bytes {
    /// Stores up to [`INLINE_MAX`] bytes; the remaining bytes are cut off.
    fn inline(bytes: &[u8]) -> Self {
        let count = bytes.len().min(INLINE_MAX);
        let mut kept = [0; INLINE_MAX];
        kept[..count].copy_from_slice(&bytes[..count]);
        Self::Inline { length: u8::try_from(count).unwrap_or(0), bytes: kept }
    }
}

impl Default for Slice {
    fn default() -> Self {
        Self(Bytes::inline(b""))
    }
}

impl Slice {
    pub(crate) fn from_block(block: Arc<Memory>, end: usize) -> Self {
        Self(Bytes::Block { block, start: 0, end })
    }

    /// Returns a slice with a copy of `bytes`, in a block of the matching size class or without a block.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_MAX {
            return Self(Bytes::inline(bytes));
        }
        let mut memory = class::obtain(bytes.len());
        memory.slice[..bytes.len()].copy_from_slice(bytes);
        Self::from_block(memory.shareable(), bytes.len())
    }

    /// Returns a part of this slice; positions are relative to the slice.
    ///
    /// # Panics
    /// If the range does not lie within the slice.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "a part lies within its slice"
        );
        match &self.0 {
            Bytes::Block { block, start, .. } if range.len() > INLINE_MAX => Self(Bytes::Block {
                block: Arc::clone(block),
                start: start + range.start,
                end: start + range.end,
            }),
            _ => Self(Bytes::inline(&self[range])),
        }
    }

    /// Removes the first `count` bytes and returns them.
    ///
    /// # Panics
    /// If `count` exceeds the length.
    #[must_use]
    pub fn split_to(&mut self, count: usize) -> Self {
        let front = self.slice(0..count);
        self.advance(count);
        front
    }

    /// Discards the first `count` bytes.
    ///
    /// # Panics
    /// If `count` exceeds the length.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "only bytes of the slice can be passed");
        match &mut self.0 {
            Bytes::Block { start, .. } => *start += count,
            Bytes::Inline { .. } => self.0 = Bytes::inline(&self[count..]),
        }
    }

    /// The number of bytes of memory that this slice keeps alive: the capacity of its whole block. Without a block it
    /// is the length of the slice.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.0 {
            Bytes::Block { block, .. } => block.slice.len(),
            Bytes::Inline { length, .. } => usize::from(*length),
        }
    }

    /// Returns the same bytes. They are copied to a block of their own size class if this block is larger than that
    /// class or if other slices share it. Callers compact a slice before they queue it, so that the counted bytes of a
    /// queue equal the memory that it keeps alive.
    #[must_use]
    pub fn compact(self) -> Self {
        let stays = match &self.0 {
            Bytes::Block { block, start, end } => {
                block.slice.len() <= class::capacity_for(end - start) && Arc::is_unique(block)
            }
            Bytes::Inline { .. } => true,
        };
        if stays { self } else { Self::copy_of(&self) }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        if matches!(self.0, Bytes::Block { .. })
            && let Bytes::Block { block, .. } = std::mem::replace(&mut self.0, Bytes::inline(b""))
        {
            class::release(block);
        }
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Block { block, start, end } => &block.slice[*start..*end],
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
        }
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
    use crate::Block;
    use crate::CAPACITY_MIN;

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
    fn few_bytes_need_no_block_and_do_all_that_others_do() {
        let text: Vec<u8> = (0..64).collect();
        for length in 0..text.len() {
            let whole = Slice::copy_of(&text[..length]);
            assert_eq!(whole.held() < CAPACITY_MIN, length <= INLINE_MAX, "{length}");
            for at in 0..=length {
                let mut rest = whole.clone();
                assert_eq!(&rest.split_to(at)[..], &text[..at]);
                assert_eq!(&rest[..], &text[at..length]);
                assert_eq!(&whole.slice(at..length)[..], &text[at..length]);
                assert_eq!(&rest.compact()[..], &text[at..length]);
            }
        }
        assert!(Slice::default().is_empty() && Slice::default().held() == 0);
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
