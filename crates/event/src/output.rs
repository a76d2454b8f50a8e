//! What a stream still has to send.
//!
//! ```text
//!   slices: whole blocks that were handed over      tail: small parts, copied together
//!   [== a ==][======= b =======]                    [-- sent --|== to send ==|-- spare --]
//! ```
//!
//! A slice that fills less than half of its block, or is small, is copied into the tail: so what
//! waits here pins at most twice what it counts, and many small answers leave as one part.

use std::collections::VecDeque;
use std::io::IoSlice;

use block::{Block, CAPACITY_POOLED_MAX, Slice};

/// Parts handed to the kernel in one call.
pub(crate) const PARTS_MAX: usize = 32;
/// A slice shorter than this is copied, whatever its block.
const COPY_BELOW: usize = 1024;
/// The first tail of an output; the next ones are larger.
const TAIL_MIN: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Output {
    slices: VecDeque<Slice>,
    tail: Option<Block>,
    /// Bytes of the tail that were sent. Zero while a slice is before it.
    tail_sent: usize,
    /// Bytes that wait, in slices and tail.
    bytes: usize,
}

impl Output {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, slice: Slice) {
        if slice.len() < COPY_BELOW || slice.len() * 2 < slice.held() {
            self.push_bytes(&slice);
            return;
        }
        self.freeze_tail();
        self.bytes += slice.len();
        self.slices.push_back(slice);
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let mut rest = bytes;
        if let Some(tail) = &mut self.tail {
            rest = &rest[tail.push(rest)..];
        }
        while !rest.is_empty() {
            let capacity = self.tail.as_ref().map_or(TAIL_MIN, |tail| tail.capacity() * 4);
            self.freeze_tail();
            let wanted = capacity.max(rest.len()).min(CAPACITY_POOLED_MAX);
            let mut tail = Block::with_capacity(wanted);
            rest = &rest[tail.push(rest)..];
            self.tail = Some(tail);
        }
    }

    /// Ends the tail, so that something can follow it.
    fn freeze_tail(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        let sent = std::mem::take(&mut self.tail_sent);
        if tail.len() > sent {
            let mut slice = tail.freeze();
            slice.advance(sent);
            self.slices.push_back(slice);
        }
    }

    /// Fills `parts` with what is to be sent first and returns how many there are.
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

    /// Forgets the first `count` bytes: the kernel has them.
    pub(crate) fn sent(&mut self, count: usize) {
        assert!(count <= self.bytes, "the kernel takes no more than it was given");
        self.bytes -= count;
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
            self.slices.pop_front();
        }
        if self.bytes == 0 {
            self.clear();
        }
    }

    /// Forgets everything and gives the blocks back.
    pub(crate) fn clear(&mut self) {
        self.slices.clear();
        self.tail = None;
        self.tail_sent = 0;
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends everything in steps of `step` bytes and returns what went out.
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
                    // A part leaves in the middle, as when the kernel took only some.
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
    fn nothing_is_owned_once_all_is_sent() {
        let mut output = Output::default();
        output.push_bytes(b"abc");
        output.sent(3);
        assert!(output.tail.is_none());
    }
}
