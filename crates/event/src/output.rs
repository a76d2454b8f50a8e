//! The bytes that a stream has to send.
//!
//! ```text
//!   slices: whole blocks, passed on without a copy   tail: small parts, copied together
//!   [== a ==][======= b =======]                     [-- sent --|== to send ==|-- spare --]
//! ```
//!
//! A slice that is short, or fills less than half of its block, is copied into the tail. Queued bytes therefore keep at
//! most twice their number allocated, and many small replies leave as one part. If even that is more memory than the
//! stream may occupy, all bytes are copied into blocks that they fill.

use std::collections::VecDeque;
use std::io::IoSlice;

use block::{Block, CAPACITY_MIN, CAPACITY_POOLED_MAX, Slice};

use crate::wait::Wait;

/// The maximum number of parts that are passed to the kernel in one call.
pub(crate) const PARTS_MAX: usize = 32;
/// A slice with fewer bytes than this is always copied.
const COPY_BELOW: usize = 1024;
/// The size in bytes of the first tail of an output; later tails are larger.
const TAIL_MIN: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Output {
    slices: VecDeque<Slice>,
    tail: Option<Block>,
    /// Sent bytes of the tail. Zero while a slice precedes it.
    tail_sent: usize,
    /// Waiting bytes, in slices and tail.
    bytes: usize,
    /// Bytes of memory that the slices keep allocated. A block that two of them share counts twice.
    sliced: usize,
    /// Bytes that the kernel has accepted since the output was last empty.
    accepted: u64,
    /// The wait for the peer, if the kernel has no room.
    wait: Option<Wait>,
}

/// The maximum number of empty outputs that are kept for other streams.
const SPARES_MAX: usize = 256;

/// Empty outputs that are kept for the next stream that sends.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes move between here and the streams")]
pub(crate) struct OutputPool(Vec<Box<Output>>);

impl OutputPool {
    #[inline]
    pub(crate) fn take(&mut self) -> Box<Output> {
        self.0.pop().unwrap_or_default()
    }

    #[inline(always)]
    pub(crate) fn give(&mut self, mut output: Box<Output>) {
        // The next stream must get an empty output.
        output.clear();
        if self.0.len() < SPARES_MAX {
            self.0.push(output);
        }
    }
}

impl Output {
    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory that the waiting bytes keep allocated, filled or not.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.sliced + self.tail.as_ref().map_or(0, Block::capacity)
    }

    /// Whether the waiting bytes keep at most `held_max` bytes of memory (and the smallest block) allocated, if
    /// necessary after compaction. Compaction is skipped if it would save little, so that it costs at most a few copies
    /// per byte.
    pub(crate) fn fits(&mut self, held_max: usize) -> bool {
        let held_max = held_max.saturating_add(CAPACITY_MIN);
        if self.held() > held_max && self.held() - self.bytes > self.bytes / 8 {
            self.compact();
        }
        self.held() <= held_max
    }

    /// Copies the waiting bytes into blocks that they fill. Afterwards at most [`CAPACITY_MIN`] more bytes of memory
    /// than the waiting bytes are allocated.
    #[cold]
    fn compact(&mut self) {
        self.freeze_tail();
        self.tail = None;
        let mut all = std::mem::take(&mut self.slices);
        self.sliced = 0;
        let mut into: Option<Block> = None;
        let mut left = self.bytes;
        for slice in all.drain(..) {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let block = into.get_or_insert_with(|| Block::with_capacity(filled_by(left)));
                let count = block.push(rest);
                (rest, left) = (&rest[count..], left - count);
                if block.remaining() == 0
                    && let Some(full) = into.take()
                {
                    self.keep(full.freeze());
                }
            }
        }
        self.tail = into;
    }

    fn keep(&mut self, slice: Slice) {
        self.sliced += slice.held();
        self.slices.push_back(slice);
    }

    pub(crate) fn push(&mut self, slice: Slice) {
        if is_copied(&slice) {
            self.push_bytes(&slice);
        } else {
            self.push_whole(slice);
        }
    }

    /// Like [`Self::push`], for a slice that the caller keeps.
    pub(crate) fn push_kept(&mut self, slice: &Slice) {
        if is_copied(slice) {
            self.push_bytes(slice);
        } else {
            self.push_whole(slice.clone());
        }
    }

    fn push_whole(&mut self, slice: Slice) {
        self.freeze_tail();
        self.bytes += slice.len();
        self.keep(slice);
    }

    #[inline(always)]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        match &mut self.tail {
            Some(tail) if tail.remaining() >= bytes.len() => {
                tail.push(bytes);
            }
            _ => self.push_beyond(bytes),
        }
    }

    /// Queues bytes for which the tail has no room.
    #[inline(never)]
    fn push_beyond(&mut self, bytes: &[u8]) {
        match &mut self.tail {
            // Many bytes do not start in an unused tail, because they would be split there.
            Some(tail) if tail.is_empty() => {
                self.tail = None;
                self.lengthen(bytes);
            }
            Some(tail) => {
                let pushed = tail.push(bytes);
                self.lengthen(&bytes[pushed..]);
            }
            None => self.lengthen(bytes),
        }
    }

    /// Creates tails until all bytes have a place.
    fn lengthen(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let capacity = self.tail.as_ref().map_or(TAIL_MIN, |tail| tail.capacity() * 4);
            self.freeze_tail();
            let wanted = capacity.max(rest.len()).min(CAPACITY_POOLED_MAX);
            let mut tail = Block::with_capacity(wanted);
            rest = &rest[tail.push(rest)..];
            self.tail = Some(tail);
        }
    }

    /// Moves the tail behind the slices, so that something can follow it.
    fn freeze_tail(&mut self) {
        let Some(tail) = self.tail.take_if(|tail| !tail.is_empty()) else { return };
        let sent = std::mem::take(&mut self.tail_sent);
        if tail.len() > sent {
            let mut slice = tail.freeze();
            slice.advance(sent);
            self.keep(slice);
        }
    }

    /// The bytes to send if they are in one part, which is the common case.
    #[inline]
    pub(crate) fn only_part(&self) -> Option<&[u8]> {
        match (&self.tail, self.slices.len()) {
            (Some(tail), 0) => Some(&tail.filled()[self.tail_sent..]),
            (None, 1) => self.slices.front().map(|slice| &slice[..]),
            _ => None,
        }
    }

    /// Fills `parts` with the bytes to send first and returns the number of parts.
    pub(crate) fn parts<'a>(&'a self, parts: &mut [IoSlice<'a>; PARTS_MAX]) -> usize {
        let mut count = 0;
        for slice in self.slices.iter().take(PARTS_MAX) {
            parts[count] = IoSlice::new(slice);
            count += 1;
        }
        if let Some(tail) = self.tail.as_ref().filter(|_| count < PARTS_MAX) {
            let rest = &tail.filled()[self.tail_sent..];
            if !rest.is_empty() {
                parts[count] = IoSlice::new(rest);
                count += 1;
            }
        }
        count
    }

    /// Records that the kernel has no room for the remaining bytes now. Returns true if it had room before.
    pub(crate) const fn note_wait(&mut self, tick: u64) -> bool {
        let begins = self.wait.is_none();
        if begins {
            self.wait = Some(Wait::new(tick, self.accepted));
        }
        begins
    }

    /// Whether the kernel has no room for it.
    pub(crate) const fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns the wait, and how many bytes the kernel has accepted.
    pub(crate) const fn wait(&mut self) -> Option<(&mut Wait, u64)> {
        match &mut self.wait {
            Some(wait) => Some((wait, self.accepted)),
            None => None,
        }
    }

    /// Removes the first `count` bytes, because the kernel has accepted them.
    #[inline]
    pub(crate) fn sent(&mut self, count: usize) {
        if count == self.bytes {
            self.clear();
        } else {
            self.sent_some(count);
        }
    }

    #[inline(never)]
    fn sent_some(&mut self, count: usize) {
        assert!(count <= self.bytes, "the kernel takes no more than it was given");
        self.bytes -= count;
        self.accepted += count as u64;
        let mut rest = count;
        while rest > 0 {
            let Some(first) = self.slices.front_mut() else {
                self.tail_sent += rest;
                break;
            };
            if rest < first.len() {
                first.advance(rest);
                break;
            }
            rest -= first.len();
            self.sliced -= first.held();
            self.slices.pop_front();
        }
    }

    /// Removes the waiting bytes and returns them in one slice. They are copied unless they are in one part.
    pub(crate) fn take_all(&mut self) -> Slice {
        self.freeze_tail();
        let all = if self.slices.len() > 1 {
            let mut block = Block::with_capacity(self.bytes);
            for slice in &self.slices {
                block.push(slice);
            }
            block.freeze()
        } else {
            self.slices.pop_front().unwrap_or_default()
        };
        self.clear();
        all
    }

    /// Releases all blocks and keeps only the number of waiting bytes: they will not be sent.
    pub(crate) fn forget(&mut self) {
        let bytes = self.bytes;
        self.clear();
        self.tail = None;
        self.bytes = bytes;
    }

    /// Removes everything and releases the blocks, except the smallest tail, which the next stream that sends needs.
    #[inline]
    pub(crate) fn clear(&mut self) {
        // All fields are listed, so that a new field cannot be overlooked.
        let Self { slices, tail, tail_sent, bytes, sliced, accepted, wait } = self;
        (*tail_sent, *bytes, *sliced, *accepted, *wait) = (0, 0, 0, 0, None);
        match tail {
            Some(tail) if tail.capacity() <= TAIL_MIN => tail.clear(),
            _ => *tail = None,
        }
        if !slices.is_empty() {
            clear_slices(slices);
        }
    }
}

#[inline(never)]
fn clear_slices(slices: &mut VecDeque<Slice>) {
    slices.clear();
}

/// Whether copying its bytes costs less than keeping its block.
fn is_copied(slice: &Slice) -> bool {
    slice.len() < COPY_BELOW || slice.len() * 2 < slice.held()
}

/// The capacity of the largest block that `bytes` bytes fill, or of the smallest block.
fn filled_by(bytes: usize) -> usize {
    let mut capacity = CAPACITY_POOLED_MAX;
    while capacity > bytes.max(CAPACITY_MIN) {
        capacity /= 4;
    }
    capacity.max(CAPACITY_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends everything in steps of `step` bytes and returns the sent bytes.
    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while output.bytes() > 0 {
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            let count = output.parts(&mut parts);
            let flat: Vec<u8> = parts[..count].iter().flat_map(|part| part.to_vec()).collect();
            let sent = step.min(flat.len());
            assert!(sent > 0, "bytes wait but no part shows them");
            all.extend_from_slice(&flat[..sent]);
            output.sent(sent);
        }
        all
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came_whatever_the_steps() {
        for step in [61, 255, 256, 1000, 70_000] {
            let mut output = Output::default();
            let mut expected = Vec::new();
            for round in 0..60_u8 {
                let size = usize::from(round) * 97 % 3000;
                let bytes = vec![round; size];
                if round % 3 == 0 {
                    output.push(Slice::copy_of(&bytes));
                } else {
                    output.push_bytes(&bytes);
                }
                expected.extend(bytes);
                if round % 7 == 0 && output.bytes() > 5 {
                    // Some parts leave in between, as when the kernel accepted only some bytes.
                    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
                    assert!(output.parts(&mut parts) > 0);
                }
            }
            assert_eq!(output.bytes(), expected.len());
            assert_eq!(drain(&mut output, step), expected);
        }
    }

    #[test]
    fn sending_and_queueing_in_turns_loses_nothing() {
        let mut output = Output::default();
        let (mut expected, mut gone) = (Vec::new(), Vec::new());
        for round in 0..2000_usize {
            let bytes = vec![u8::try_from(round % 251).unwrap(); round * 31 % 1700];
            expected.extend_from_slice(&bytes);
            output.push(Slice::copy_of(&bytes));
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            let count = output.parts(&mut parts);
            let flat: Vec<u8> = parts[..count].iter().flat_map(|part| part.to_vec()).collect();
            let sent = flat.len().min(round * 17 % 900);
            gone.extend_from_slice(&flat[..sent]);
            output.sent(sent);
        }
        gone.extend(drain(&mut output, 4096));
        assert_eq!(gone, expected);
    }

    #[test]
    fn many_small_parts_leave_as_one_and_thin_slices_pin_nothing() {
        let mut output = Output::default();
        let mut block = Block::with_capacity(CAPACITY_POOLED_MAX);
        block.push(&[7; 48 * 100]);
        let whole = block.freeze();
        for part in 0..100 {
            output.push(whole.slice(part * 48..(part + 1) * 48));
        }
        assert!(output.slices.iter().all(|slice| slice.held() <= 2 * slice.len()));
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        assert!(output.parts(&mut parts) <= 4);
        assert_eq!(output.bytes(), 4800);
    }

    #[test]
    fn what_is_compacted_holds_what_it_counts_and_leaves_as_it_came() {
        for step in [1, 5000, 40_000, 100_000] {
            let (mut output, mut expected) = (Output::default(), Vec::new());
            for round in 1..9_usize {
                let mut block = Block::with_capacity(CAPACITY_POOLED_MAX);
                block.push(&vec![u8::try_from(round).unwrap(); 34_000 + round * 7]);
                expected.extend_from_slice(block.filled());
                output.push(block.freeze());
                output.push_bytes(&vec![100; round * 113]);
                expected.extend(vec![100; round * 113]);
            }
            output.sent(step);
            assert!(output.held() > output.bytes() * 3 / 2);
            output.compact();
            assert!(output.held() <= output.bytes() + CAPACITY_MIN, "{output:?}");
            assert_eq!(drain(&mut output, 7001), expected[step..]);
            assert_eq!(output.sliced, 0);
        }
        let mut nothing = Output::default();
        nothing.compact();
        assert_eq!((nothing.held(), nothing.bytes()), (0, 0));
    }

    #[test]
    fn no_more_than_the_smallest_tail_is_owned_once_all_is_sent() {
        let mut output = Output::default();
        for length in [3, TAIL_MIN + 1, 100_000] {
            output.push_bytes(&vec![7; length]);
            output.sent(length);
            assert!(output.slices.is_empty());
            assert!(output.tail.as_ref().is_none_or(|tail| tail.capacity() <= TAIL_MIN));
        }
    }
}
