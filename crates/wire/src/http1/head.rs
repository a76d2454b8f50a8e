//! Finds the end of a head line by line. No byte is scanned twice.

use std::ops::Range;

use super::{Limits, Refusal};

/// A complete head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The range of the head in the given bytes, including the empty line at its end. An empty line before the head is
    /// not included.
    pub head: Range<usize>,
    /// The length of the first line without its line end, in bytes.
    pub line: usize,
}

impl Found {
    /// The first line of the head without its line end, and the field lines with their line ends.
    pub(super) fn split<'a>(&self, head: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (&head[..self.line], &head[self.line + 2..head.len() - 2])
    }
}

/// The field capacity that a reused head keeps.
pub(super) const KEPT_FIELDS: usize = 128;
/// The memory that a reused head keeps for its lines, in bytes.
pub(super) const KEPT_BYTES: usize = 4096;

/// The state of scanning the bytes at the front.
///
/// A scan is only a cache. It may be dropped at any time: a new scan over all unconsumed bytes finds the same head. A
/// scan must never be used for the bytes of another stream.
///
/// ```text
///   0 ≤ start ≤ line ≤ scanned ≤ shown;  first = 0 until the first line has ended
///   |- CR LF -|= first =|…|- the incomplete line -|
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    start: usize,
    line: usize,
    scanned: usize,
    /// The end of the first line, without its CR.
    first: usize,
}

impl HeadScan {
    /// Whether a part of a head was received. An empty line before a head does not count.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.scanned > self.start
    }

    /// Returns the head at the front if it is complete, and restarts the scan. `bytes` begins with the bytes of earlier
    /// calls. One empty line before a head is skipped, as RFC 9112 §2.2 recommends for requests. If `bytes` is shorter
    /// than in the previous call, it is treated as new input and the scan restarts.
    ///
    /// # Errors
    /// If a line ends with LF without CR, or a limit is exceeded.
    pub fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Found>, Refusal> {
        if bytes.len() < self.scanned {
            *self = Self::default();
        }
        let mut at = self.scanned;
        let (words, rest) = bytes.get(at..).unwrap_or_default().as_chunks::<8>();
        for word in words {
            let ends = line_feeds(u64::from_le_bytes(*word));
            if ends != 0
                && let Some(found) = self.lines_end(bytes, at, ends, limits)?
            {
                return Ok(Some(found));
            }
            at += 8;
        }
        let ends = line_feeds(last_word(bytes, rest));
        if ends != 0
            && let Some(found) = self.lines_end(bytes, at, ends, limits)?
        {
            return Ok(Some(found));
        }
        self.scanned = bytes.len();
        let shown = bytes.len() - self.start;
        if self.first == 0 && shown > limits.line + 1 {
            return Err(Refusal::LineTooLong);
        }
        if shown > limits.head { Err(Refusal::HeadTooLong) } else { Ok(None) }
    }

    /// Handles the line feeds among the eight bytes at `at`. `ends` has the high bit of each line feed.
    #[inline]
    fn lines_end(
        &mut self,
        bytes: &[u8],
        at: usize,
        mut ends: u64,
        limits: &Limits,
    ) -> Result<Option<Found>, Refusal> {
        while ends != 0 {
            let end = at + ends.trailing_zeros() as usize / 8;
            if let Some(found) = self.line_ends(bytes, end, limits)? {
                return Ok(Some(found));
            }
            ends &= ends - 1;
        }
        Ok(None)
    }

    /// Handles the line feed at `end`. Returns the head if the line was its last.
    #[inline]
    fn line_ends(
        &mut self,
        bytes: &[u8],
        end: usize,
        limits: &Limits,
    ) -> Result<Option<Found>, Refusal> {
        self.scanned = end + 1;
        if end == self.line || bytes[end - 1] != b'\r' {
            return Err(Refusal::LineFeed);
        }
        let is_empty = end == self.line + 1;
        self.line = end + 1;
        if self.first > 0 {
            if !is_empty {
                return Ok(None);
            }
            let head = self.start..end + 1;
            if head.len() > limits.head {
                return Err(Refusal::HeadTooLong);
            }
            let line = self.first - self.start;
            *self = Self::default();
            return Ok(Some(Found { head, line }));
        }
        if !is_empty {
            self.first = end - 1;
            if self.first - self.start > limits.line {
                return Err(Refusal::LineTooLong);
            }
        } else if self.start == 0 {
            self.start = end + 1;
        } else {
            return Err(Refusal::RequestLine);
        }
        Ok(None)
    }
}

/// A word with the last bytes of `bytes`, fewer than eight, padded with zeros.
#[inline]
fn last_word(bytes: &[u8], last: &[u8]) -> u64 {
    match bytes.last_chunk::<8>() {
        _ if last.is_empty() => 0,
        // The bytes before them are shifted out.
        Some(word) => u64::from_le_bytes(*word) >> (8 * (8 - last.len())),
        None => last.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Sets the high bit of each byte that is a line feed, and no other bit.
#[inline]
const fn line_feeds(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let other = word ^ 0x0a0a_0a0a_0a0a_0a0a;
    !(((other & LOW) + LOW) | other | LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_that_was_shown_more_than_there_is_begins_anew() {
        for shown in [&b"\r\n"[..], b"\r\nGE", b"GET / HTTP/1.1\r\nHost: abc\r\n"] {
            let mut scan = HeadScan::default();
            assert_eq!(scan.next(shown, &Limits::REQUEST), Ok(None));
            let head = b"GET /x HTTP/1.1\r\n\r\n";
            assert_eq!(scan.next(&head[..1], &Limits::REQUEST), Ok(None), "{shown:?}");
            let found = scan.next(head, &Limits::REQUEST).unwrap().expect("the head is whole");
            assert_eq!(found, Found { head: 0..head.len(), line: 15 }, "{shown:?}");
        }
    }

    #[test]
    fn a_scan_that_is_kept_finds_what_a_new_one_finds() {
        for bytes in [&b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"\r\n\r\n", b"\r\nA\n"] {
            let whole = HeadScan::default().next(bytes, &Limits::REQUEST);
            for shown in 0..bytes.len() {
                let mut kept = HeadScan::default();
                if kept.next(&bytes[..shown], &Limits::REQUEST) == Ok(None) {
                    assert_eq!(kept.next(bytes, &Limits::REQUEST), whole, "{shown}");
                }
            }
        }
    }

    #[test]
    fn line_feeds_are_seen_wherever_they_stand_and_nothing_else() {
        for bits in 0..256_u32 {
            for other in 0..=255_u8 {
                let byte = |place: u32| if bits >> place & 1 == 1 { b'\n' } else { other };
                let bytes: Vec<u8> = (0..8).map(byte).collect();
                let word: [u8; 8] = bytes[..].try_into().unwrap();
                let found = line_feeds(u64::from_le_bytes(word));
                for (place, byte) in bytes.iter().enumerate() {
                    assert_eq!(found >> (8 * place) & 0xff == 0x80, *byte == b'\n', "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_at_the_end_is_a_word_with_zeros_behind_it() {
        let bytes: Vec<u8> = (1..=19).collect();
        for length in 0..=bytes.len() {
            for count in 0..=length.min(7) {
                let last = &bytes[length - count..length];
                let mut due = [0; 8];
                due[..count].copy_from_slice(last);
                let word = last_word(&bytes[..length], last);
                assert_eq!(word.to_le_bytes(), due, "{count} of {length}");
            }
        }
    }
}
