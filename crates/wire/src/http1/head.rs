//! Finds the end of a head, line by line, and never looks at a byte twice.

use std::ops::Range;

use memchr::memchr;

use super::{Limits, Refusal};

/// A head that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it lies in the bytes shown, the empty line at its end included. What is before it is
    /// an empty line that was passed over.
    pub head: Range<usize>,
    /// Bytes of its first line, without the line end.
    pub line: usize,
}

impl Found {
    /// The first line of the head, without its end, and the lines of the fields, with theirs.
    pub(super) fn split<'a>(&self, head: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (&head[..self.line], &head[self.line + 2..head.len() - 2])
    }
}

/// Fields for which the place of a head keeps room.
pub(super) const KEPT_FIELDS: usize = 128;
/// Bytes of memory that the place of a head keeps for its lines.
pub(super) const KEPT_BYTES: usize = 4096;

/// How far the bytes at the front were looked at.
///
/// ```text
///   0 ≤ start ≤ line ≤ scanned ≤ shown;  first = 0 until the first line has ended
///   |- CR LF -|= first =|…|- the line that has not ended -|
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    start: usize,
    line: usize,
    scanned: usize,
    /// Where the first line ended, its CR not included.
    first: usize,
}

impl HeadScan {
    /// Whether bytes of a head were seen that has not ended.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.scanned > self.start
    }

    /// The head at the front, once it is whole; the scan then begins anew. `bytes` begins with
    /// what was shown before. One empty line before a head is passed over, as RFC 9112 §2.2 asks
    /// for of those who read requests.
    ///
    /// # Errors
    /// When a line ends with LF alone, or a limit is passed.
    pub fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Found>, Refusal> {
        while let Some(found) = memchr(b'\n', bytes.get(self.scanned..).unwrap_or_default()) {
            let end = self.scanned + found;
            self.scanned = end + 1;
            if end == self.line || bytes[end - 1] != b'\r' {
                return Err(Refusal::LineFeed);
            }
            let is_empty = end == self.line + 1;
            self.line = end + 1;
            if self.first > 0 {
                if !is_empty {
                    continue;
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
        }
        self.scanned = bytes.len();
        let shown = bytes.len() - self.start;
        if self.first == 0 && shown > limits.line + 1 {
            return Err(Refusal::LineTooLong);
        }
        if shown > limits.head { Err(Refusal::HeadTooLong) } else { Ok(None) }
    }
}
