//! A byte buffer for many short appends.
//!
//! ```text
//!   |======= written =======|--- spare ---|        all of it is initialised, so that short parts can
//!   0                    length        capacity    be copied as two overlapping words
//! ```
//!
//! A `Vec` calls `memcpy` for each part. For a name of ten bytes, the call is most of the cost.

use std::ops::{Deref, DerefMut};

/// A growable byte buffer. It dereferences to the slice of the written bytes.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Invariant: its length equals its capacity, except for excess capacity from the allocator.
    memory: Vec<u8>,
    /// Invariant: at most the length of `memory`.
    length: usize,
}

/// The minimum capacity after automatic growth, in bytes.
const CAPACITY_MIN: usize = 64;

impl Buffer {
    pub(crate) const fn new() -> Self {
        Self { memory: Vec::new(), length: 0 }
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let mut buffer = Self::new();
        buffer.reserve_exact(capacity);
        buffer
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Reserves capacity for `more` bytes after the written bytes.
    pub(crate) fn reserve_exact(&mut self, more: usize) {
        let capacity = self.length + more;
        if capacity > self.memory.len() {
            // Zeroed memory from `calloc` is not used, because `calloc` bypasses the fast free lists of most
            // allocators.
            self.memory.reserve_exact(capacity - self.memory.len());
            self.memory.resize(capacity, 0);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.reserve_exact(more.max(self.length).max(CAPACITY_MIN - self.length.min(CAPACITY_MIN)));
    }

    #[inline]
    pub(crate) fn extend_from_slice(&mut self, part: &[u8]) {
        if part.len() > self.memory.len() - self.length {
            self.grow(part.len());
        }
        let end = self.length + part.len();
        copy(part, &mut self.memory[self.length..end]);
        self.length = end;
    }

    #[inline(always)]
    pub(crate) fn extend_from_both(&mut self, first: &[u8], second: &[u8]) {
        let (middle, more) = (self.length + first.len(), first.len() + second.len());
        if more > self.memory.len() - self.length {
            self.grow(more);
        }
        let end = self.length + more;
        let to = &mut self.memory[self.length..end];
        let (to_first, to_second) = to.split_at_mut(middle - self.length);
        copy(first, to_first);
        copy(second, to_second);
        self.length = end;
    }

    /// Appends a copy of a part of the written bytes.
    pub(crate) fn extend_from_within(&mut self, part: std::ops::Range<usize>) {
        let end = self.length + part.len();
        if end > self.memory.len() {
            self.grow(part.len());
        }
        self.memory.copy_within(part, self.length);
        self.length = end;
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) const fn clear(&mut self) {
        self.length = 0;
    }

    /// Frees memory, down to `capacity` or the length of the written bytes, whichever is larger.
    pub(crate) fn shrink_to(&mut self, capacity: usize) {
        self.memory.truncate(capacity.max(self.length));
        self.memory.shrink_to_fit();
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.length]
    }
}

/// The capacity of a copy is the length of the written bytes.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self { memory: self[..].to_vec(), length: self.length }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

/// Copies a part of 4 to 32 bytes as two words that may overlap.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    let length = from.len();
    let to = &mut to[..length];
    let copied = if length >= 16 {
        length <= 32 && copy_ends::<16>(from, to)
    } else if length >= 8 {
        copy_ends::<8>(from, to)
    } else {
        length >= 4 && copy_ends::<4>(from, to)
    };
    if !copied {
        to.copy_from_slice(from);
    }
}

#[inline]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut::<N>() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut::<N>() {
        *to = *last;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_every_length_lie_behind_each_other() {
        let all: Vec<u8> = (0..=255).collect();
        let (mut buffer, mut expected) = (Buffer::new(), Vec::new());
        for length in 0..100 {
            buffer.extend_from_slice(&all[length..2 * length]);
            expected.extend_from_slice(&all[length..2 * length]);
            assert_eq!(buffer[..], expected[..], "{length}");
        }
        buffer.extend_from_within(10..30);
        expected.extend_from_within(10..30);
        buffer.truncate(4900);
        expected.truncate(4900);
        assert_eq!(buffer.clone()[..], expected[..]);
        assert_eq!(buffer.clone().capacity(), 4900);
    }

    #[test]
    fn memory_is_kept_and_given_back() {
        let mut buffer = Buffer::with_capacity(1000);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 1000));
        buffer.extend_from_slice(&[1; 300]);
        buffer.shrink_to(100);
        assert_eq!((buffer.len(), buffer.capacity()), (300, 300));
        buffer.clear();
        buffer.extend_from_slice(&[2; 301]);
        assert_eq!((buffer[0], buffer.capacity()), (2, 301));
        buffer.extend_from_slice(b"x");
        assert_eq!(buffer.capacity(), 602, "it doubles");
    }
}
