//! A decoder for one message per line.
//!
//! A line ends with LF; a CR before it belongs to the line end. A line over the limit is reported once and skipped up
//! to its LF, so that one long line does not end the stream.
//!
//! ```
//! use wire::lines::{Lines, Piece};
//!
//! let mut lines = Lines::new(10);
//! let bytes = b"one\r\ntwo\nthr";
//! let mut from = 0;
//! assert_eq!(lines.next(bytes, &mut from), Some(Piece::Line(0..3)));
//! assert_eq!(lines.next(bytes, &mut from), Some(Piece::Line(5..8)));
//! assert_eq!(lines.next(bytes, &mut from), None);
//! assert_eq!(lines.consume(bytes.len(), from), 9);
//! ```

use std::ops::Range;

use exchange::Outcome;
use memchr::memchr;

use crate::reply;
pub use crate::reply::Marks;

/// Finds lines in the bytes of one direction of a stream.
///
/// The caller passes all bytes that it has not consumed yet, and calls [`Self::next`] repeatedly. When `next` returns
/// `None`, the caller calls [`Self::consume`]. The position up to which the rest was searched is stored, so that no
/// byte is searched twice.
#[derive(Debug)]
pub struct Lines {
    line_max: usize,
    /// The terminator of a line.
    mark: Mark,
    /// The number of unconsumed bytes at the front without a line end.
    scanned: usize,
    /// Whether the current line was reported as too long and its end was not found yet.
    skipping: bool,
    /// The position of the last line that was reported as too long, in the bytes given at that time.
    reported: usize,
    /// The bytes that the last step skipped of a line that had been reported: their range in the bytes given at that
    /// time.
    passed: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// LF or CRLF.
    Newline,
    Nul,
}

/// The result of one step.
pub(crate) enum Step {
    Piece(Piece),
    /// The end of a line that was reported as too long.
    Passed,
}

/// An item that the decoder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line without its line end: its range in the given bytes.
    Line(Range<usize>),
    /// A line over the limit. It is reported once, as soon as the length is known to exceed the limit.
    TooLong,
}

impl Lines {
    /// Creates a decoder for lines of at most `line_max` bytes, excluding the line end.
    #[must_use]
    pub const fn new(line_max: usize) -> Self {
        Self::of(Mark::Newline, line_max)
    }

    /// Creates a decoder for frames that end with NUL, of at most `frame_max` bytes, excluding the NUL.
    #[must_use]
    pub(crate) const fn nul(frame_max: usize) -> Self {
        Self::of(Mark::Nul, frame_max)
    }

    const fn of(mark: Mark, line_max: usize) -> Self {
        Self { line_max, mark, scanned: 0, skipping: false, reported: 0, passed: 0..0 }
    }

    /// Returns the piece at `from`, and moves `from` to its end.
    pub fn next(&mut self, bytes: &[u8], from: &mut usize) -> Option<Piece> {
        loop {
            if let Step::Piece(piece) = self.step(bytes, from)? {
                return Some(piece);
            }
        }
    }

    /// Like [`Self::next`], but also returns at the end of a line that was too long.
    pub(crate) fn step(&mut self, bytes: &[u8], from: &mut usize) -> Option<Step> {
        let start = *from;
        let rest = bytes.get(start..)?;
        let searched = self.scanned.min(rest.len());
        let (mark, may_have_cr) = match self.mark {
            Mark::Newline => (b'\n', true),
            Mark::Nul => (0, false),
        };
        self.reported = start;
        let found = memchr(mark, &rest[searched..]);
        let end = found.map_or(rest.len(), |found| searched + found);
        self.passed = if self.skipping { start + searched..start + end } else { 0..0 };
        if found.is_none() {
            return self.unfinished(rest.len(), usize::from(may_have_cr)).map(Step::Piece);
        }
        self.scanned = 0;
        *from = start + end + 1;
        if std::mem::take(&mut self.skipping) {
            return Some(Step::Passed);
        }
        let has_cr = may_have_cr && rest[..end].ends_with(b"\r");
        let length = end - usize::from(has_cr);
        let fits = length <= self.line_max;
        Some(Step::Piece(if fits { Piece::Line(start..start + length) } else { Piece::TooLong }))
    }

    /// The bytes that the last step skipped of a line that had been reported as too long: their range in the given
    /// bytes.
    pub(crate) fn passed(&self) -> Range<usize> {
        self.passed.clone()
    }

    /// Stores that the `length` bytes of the rest contain no line end.
    fn unfinished(&mut self, length: usize, mark_ahead: usize) -> Option<Piece> {
        self.scanned = length;
        // The additional byte may be the CR of a line end whose LF was not received yet.
        let too_long = length > self.line_max.saturating_add(mark_ahead) && !self.skipping;
        self.skipping |= too_long;
        too_long.then_some(Piece::TooLong)
    }

    /// The position of the line that was just reported as too long, in the given bytes.
    pub(crate) const fn too_long_at(&self) -> usize {
        self.reported
    }

    /// The number of the `shown` bytes that the caller must discard if the next piece begins at `from`.
    pub fn consume(&mut self, shown: usize, from: usize) -> usize {
        if self.skipping {
            self.scanned = 0;
            shown
        } else {
            from
        }
    }

    /// Whether there is an incomplete line: the last `rest` bytes, or a line that is being skipped.
    #[must_use]
    pub fn is_begun(&self, rest: usize) -> bool {
        rest > 0 || self.skipping
    }

    /// Handles the end of the stream. The `rest` bytes after the last line end are nothing, a line without its end, or
    /// the rest of a line that was too long.
    pub fn finish(&mut self, rest: &[u8]) -> Option<Piece> {
        let skipping = std::mem::take(&mut self.skipping);
        self.scanned = 0;
        match rest.len() {
            0 => None,
            _ if skipping => None,
            length if length > self.line_max => Some(Piece::TooLong),
            length => Some(Piece::Line(0..length)),
        }
    }
}

/// Whether a line contains a character that other readers of lines treat as a line end: CR (universal newlines, as in
/// Python), U+2028 and U+2029 (as in `readline` of Node.js), and U+0085 (in addition to these, as in `Scanner.nextLine`
/// of Java).
///
/// ```
/// use wire::lines::has_line_break;
///
/// assert!(has_line_break(b"one\rtwo") && has_line_break("\u{2028}".as_bytes()));
/// assert!(has_line_break("one\u{85}two".as_bytes()));
/// assert!(!has_line_break("one\ttwo \u{2027}\u{a0}".as_bytes()));
/// ```
#[must_use]
pub fn has_line_break(line: &[u8]) -> bool {
    memchr::memchr3_iter(b'\r', 0xc2, 0xe2, line).any(|at| {
        matches!(line[at..], [b'\r', ..] | [0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..])
    })
}

/// Appends one reply with its line end to `out`.
pub fn write_reply(out: &mut Vec<u8>, marks: Marks, outcome: &Outcome) {
    reply::write_text(out, marks, outcome);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::{Cause, Phase, Slice};

    /// All pieces of `bytes` when they arrive in parts of `step` bytes.
    fn pieces(bytes: &[u8], line_max: usize, step: usize) -> (Vec<Result<Vec<u8>, ()>>, Vec<u8>) {
        let mut lines = Lines::new(line_max);
        let (mut held, mut found) = (Vec::new(), Vec::new());
        for part in bytes.chunks(step) {
            held.extend_from_slice(part);
            let mut from = 0;
            while let Some(piece) = lines.next(&held, &mut from) {
                found.push(match piece {
                    Piece::Line(range) => Ok(held[range].to_vec()),
                    Piece::TooLong => Err(()),
                });
            }
            let consumed = lines.consume(held.len(), from);
            held.drain(..consumed);
            assert!(held.len() <= line_max + 1, "what waits for its end is bounded");
        }
        (found, held)
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let bytes = b"a\r\n\nlonger line\ntoo long a line\nb\r\r\nlast";
        let whole = pieces(bytes, 11, bytes.len());
        let expected: Vec<Result<Vec<u8>, ()>> = vec![
            Ok(b"a".into()),
            Ok(vec![]),
            Ok(b"longer line".into()),
            Err(()),
            Ok(b"b\r".into()),
        ];
        assert_eq!(whole, (expected, b"last".to_vec()));
        for step in 1..bytes.len() {
            assert_eq!(pieces(bytes, 11, step), whole, "in parts of {step}");
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        assert_eq!(pieces(b"abc\n", 3, 1).0, [Ok(b"abc".to_vec())]);
        assert_eq!(pieces(b"abc\r\n", 3, 1).0, [Ok(b"abc".to_vec())]);
        assert_eq!(pieces(b"abcd\nx\n", 3, 1).0, [Err(()), Ok(b"x".to_vec())]);
        assert_eq!(pieces(b"abcd\nx\n", 3, 9).0, [Err(()), Ok(b"x".to_vec())]);
    }

    #[test]
    fn an_endless_line_is_reported_once_and_holds_no_memory() {
        let (found, rest) = pieces(&[b'x'; 100_000], 100, 1000);
        assert_eq!(found, [Err(())]);
        assert!(rest.is_empty());
    }

    #[test]
    fn the_end_tells_an_unterminated_line_from_none() {
        let mut lines = Lines::new(5);
        assert_eq!(lines.finish(b""), None);
        assert_eq!(lines.finish(b"abc"), Some(Piece::Line(0..3)));
        assert_eq!(lines.finish(b"abcdef"), Some(Piece::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_in_any_parts_give_the_same_lines(
            bytes in proptest::collection::vec(proptest::prelude::prop_oneof![
                proptest::prelude::Just(b'\n'), proptest::prelude::Just(b'\r'),
                proptest::prelude::any::<u8>()], 0..200),
            step in 1_usize..50, line_max in 1_usize..20,
        ) {
            let whole = pieces(&bytes, line_max, bytes.len().max(1));
            proptest::prop_assert_eq!(pieces(&bytes, line_max, step).0, whole.0);
        }
    }

    fn written(marks: Marks, outcome: &Outcome) -> String {
        let mut out = Vec::new();
        write_reply(&mut out, marks, outcome);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_verdict_has_its_mark() {
        let cases = [
            (Outcome::Reply(Slice::from("!x")), "!x\n", "+!x\n"),
            (
                Outcome::ended(Cause::Full, Phase::Queue, "try again"),
                "!full try again\n",
                "!full try again\n",
            ),
            (
                Outcome::ended(Cause::Deadline, Phase::Work, "after 30s"),
                "!unknown deadline after 30s\n",
                "-deadline after 30s\n",
            ),
            (Outcome::ended(Cause::Database, Phase::Work, ""), "!failed database\n", "-database\n"),
            (Outcome::ended(Cause::Worker, Phase::Work, "no\nway"), "!no way\n", "!no way\n"),
        ];
        for (outcome, plain, status) in cases {
            assert_eq!(written(Marks::Plain, &outcome), plain);
            assert_eq!(written(Marks::Status, &outcome), status);
        }
    }
}
