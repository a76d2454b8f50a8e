//! Received bytes that are lent to the handler.

use std::fmt;

use block::{Block, Slice};

/// Received bytes. Bytes that are neither consumed nor taken stay with the stream and are offered again.
#[derive(Debug)]
pub struct Data<'a> {
    lent: &'a mut Lent,
}

impl<'a> Data<'a> {
    #[inline]
    pub(crate) const fn new(lent: &'a mut Lent) -> Self {
        Self { lent }
    }

    /// The bytes that are neither consumed nor taken yet.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.lent.bytes()
    }

    /// Consumes the first `count` bytes.
    ///
    /// # Panics
    /// If there are fewer bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.lent.left(), "only bytes that are there can be consumed");
        self.lent.start += count;
    }

    /// Consumes the first `count` bytes and returns them as a slice that can be kept. If they are less than half of the
    /// block, they are copied into a block of their own size; otherwise the slice shares the block without a copy.
    ///
    /// # Panics
    /// If there are fewer bytes.
    #[must_use]
    pub fn take(&mut self, count: usize) -> Slice {
        assert!(count <= self.bytes().len(), "only bytes that are there can be taken");
        let part = if count * 2 < self.lent.capacity() {
            Slice::copy_of(&self.bytes()[..count])
        } else {
            self.lent.share(count)
        };
        self.lent.start += count;
        part
    }

    /// Takes the first line, without its end: LF, or CR and LF. Returns `None` if no line is complete; those bytes stay
    /// and are offered again with the next ones. Like the bytes of [`Self::take`], the line can be kept.
    ///
    /// `line_max` is the maximum number of bytes of a line, without its end.
    ///
    /// ```
    /// # use event::{Context, Event};
    /// const LINE_MAX: usize = 4096;
    ///
    /// fn handle(io: &mut Context<'_>, event: Event<'_, ()>) {
    ///     if let Event::Data { stream, mut data, .. } = event {
    ///         loop {
    ///             match data.take_line(LINE_MAX) {
    ///                 Ok(Some(line)) => println!("{}", String::from_utf8_lossy(&line)),
    ///                 Ok(None) => return,
    ///                 Err(_) => return io.finish(stream, None),
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The first line is longer, complete or not. Its bytes stay, so every later call returns the same error: end the
    /// stream, or [consume](Self::consume) them.
    pub fn take_line(&mut self, line_max: usize) -> Result<Option<Slice>, LineTooLong> {
        let bytes = self.bytes();
        // The longest line may be followed by CR and LF.
        let searched = &bytes[..bytes.len().min(line_max.saturating_add(2))];
        let Some(end) = searched.iter().position(|&byte| byte == b'\n') else {
            // A CR behind the longest line may belong to its end.
            let ends_later =
                searched.len() == line_max.saturating_add(1) && searched.ends_with(b"\r");
            return if searched.len() <= line_max || ends_later {
                Ok(None)
            } else {
                Err(LineTooLong)
            };
        };
        let length = if end > 0 && bytes[end - 1] == b'\r' { end - 1 } else { end };
        if length > line_max {
            return Err(LineTooLong);
        }
        let line = self.take(length);
        self.consume(end + 1 - length);
        Ok(Some(line))
    }

    /// Whether these bytes are offered for the last time: the peer's end follows, and bytes that are not consumed now
    /// are dropped (unless the stream is paused).
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.lent.last
    }
}

/// A line is longer than its maximum ([`Data::take_line`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong;

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the line is longer than its maximum")
    }
}

impl std::error::Error for LineTooLong {}

/// The bytes of one offer.
///
/// ```text
///   0 ≤ start ≤ filled ≤ capacity
///   |--- consumed ---|=== offered ===|--- spare ---|
/// ```
#[derive(Debug)]
pub(crate) struct Lent {
    body: Body,
    start: usize,
    last: bool,
}

#[derive(Debug)]
enum Body {
    /// The only owner is the loop; the block can be filled further.
    Own(Block),
    /// A part was taken; the bytes can only be read.
    Shared(Slice),
}

impl Lent {
    pub(crate) const fn new(block: Block, last: bool) -> Self {
        Self { body: Body::Own(block), start: 0, last }
    }

    /// An offer without bytes and without memory.
    pub(crate) fn nothing() -> Self {
        Self { body: Body::Shared(Slice::default()), start: 0, last: false }
    }

    /// Returns an empty block with room for `capacity` bytes: the previous one, or a new one if the previous one is
    /// smaller or shared.
    #[inline]
    pub(crate) fn refill(&mut self, capacity: usize) -> &mut Block {
        self.start = 0;
        self.last = false;
        if !matches!(&self.body, Body::Own(block) if block.capacity() >= capacity) {
            self.body = Body::Own(Block::with_capacity(capacity));
        }
        let Body::Own(block) = &mut self.body else { unreachable!("it was just made") };
        block.clear();
        block
    }

    /// Counts `count` received bytes after the filled bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        if let Body::Own(block) = &mut self.body {
            block.advance(count);
        }
    }

    /// Whether all bytes are consumed and the block can be filled again.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_own() && self.left() == 0
    }

    /// The number of bytes that are neither consumed nor taken yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        let filled = match &self.body {
            Body::Own(block) => block.len(),
            Body::Shared(slice) => slice.len(),
        };
        filled - self.start
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Own(block) => &block.filled()[self.start..],
            Body::Shared(slice) => &slice[self.start..],
        }
    }

    /// Whether the block is not shared.
    #[inline]
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self.body, Body::Own(_))
    }

    pub(crate) const fn is_last(&self) -> bool {
        self.last
    }

    /// The number of bytes that were consumed or taken.
    pub(crate) const fn consumed(&self) -> usize {
        self.start
    }

    /// Returns the block and the position of the remaining bytes in it; or only the remaining bytes, if a part was
    /// taken.
    pub(crate) fn into_block(self) -> Result<(Block, usize), Slice> {
        match self.body {
            Body::Own(block) => Ok((block, self.start)),
            Body::Shared(mut slice) => {
                slice.advance(self.start);
                Err(slice)
            }
        }
    }

    /// Bytes of memory that are lent, filled or not.
    pub(crate) fn capacity(&self) -> usize {
        match &self.body {
            Body::Own(block) => block.capacity(),
            Body::Shared(slice) => slice.held(),
        }
    }

    /// Returns the next `count` bytes as a slice of the block, which is never filled again.
    fn share(&mut self, count: usize) -> Slice {
        let body = std::mem::replace(&mut self.body, Body::Shared(Slice::default()));
        let whole = match body {
            Body::Own(block) => block.freeze(),
            Body::Shared(slice) => slice,
        };
        let part = whole.slice(self.start..self.start + count);
        self.body = Body::Shared(whole);
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(length: usize) -> Lent {
        let bytes: Vec<u8> = (0..=255).cycle().take(length).collect();
        Lent::new(Block::copy_of(&bytes), false)
    }

    #[test]
    fn a_small_part_is_copied_and_pins_nothing() {
        let mut lent = lent(1000);
        let part = Data::new(&mut lent).take(10);
        assert!(part.held() <= 64);
        assert_eq!(lent.bytes()[0], 10);
        assert!(lent.into_block().is_ok(), "the block is still ours");
    }

    #[test]
    fn a_large_part_takes_the_block_along_without_a_copy() {
        let mut lent = lent(1000);
        let place = lent.bytes().as_ptr();
        let mut data = Data::new(&mut lent);
        data.consume(1);
        let part = data.take(900);
        assert_eq!(part.as_ptr(), place.wrapping_add(1));
        assert_eq!(data.bytes().len(), 99);
        assert_eq!(&part[..2], [1, 2]);
        assert!(lent.into_block().is_err());
    }

    /// The lines in bytes that are offered in parts of `part` bytes, and whether a line is too long.
    fn lines(bytes: &[u8], part: usize, line_max: usize) -> (Vec<String>, bool) {
        let mut lines = Vec::new();
        let mut held = Vec::new();
        for part in bytes.chunks(part) {
            held.extend_from_slice(part);
            let mut lent = Lent::new(Block::copy_of(&held), false);
            let mut data = Data::new(&mut lent);
            loop {
                match data.take_line(line_max) {
                    Ok(Some(line)) => lines.push(String::from_utf8(line.to_vec()).unwrap()),
                    Ok(None) => break,
                    Err(LineTooLong) => {
                        assert_eq!(data.take_line(line_max), Err(LineTooLong), "it stays");
                        return (lines, true);
                    }
                }
            }
            held = data.bytes().to_vec();
        }
        (lines, false)
    }

    #[test]
    fn a_line_is_taken_without_its_end_and_an_incomplete_one_stays() {
        let bytes = b"one\r\n\ntwo\rthree\n\r\nfour\r";
        for part in 1..=bytes.len() {
            let expected = ["one", "", "two\rthree", ""].map(str::to_owned);
            assert_eq!(lines(bytes, part, 9), (expected.to_vec(), false), "in parts of {part}");
        }
    }

    #[test]
    fn a_line_beyond_the_maximum_is_an_error_before_its_end_arrives() {
        for part in 1..=10 {
            let four = vec!["four".to_owned()];
            assert_eq!(lines(b"four\n", part, 4), (four.clone(), false));
            assert_eq!(lines(b"four\r\n", part, 4), (four.clone(), false));
            assert_eq!(lines(b"four\r", part, 4), (vec![], false), "its end may follow");
            assert_eq!(lines(b"four\nfives", part, 4), (four, true));
            assert_eq!(lines(b"four\r\r\n", part, 4), (vec![], true));
            assert_eq!(lines(b"fives\n", part, 4), (vec![], true));
            assert_eq!(lines(b"a\n", part, usize::MAX), (vec!["a".to_owned()], false));
        }
    }

    #[test]
    #[should_panic(expected = "only bytes that are there")]
    fn more_than_is_there_cannot_be_consumed() {
        Data::new(&mut lent(10)).consume(11);
    }
}
