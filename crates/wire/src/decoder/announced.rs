//! Frames that begin with their length.
//!
//! ```text
//!            complete head, length ≤ max            complete
//!   Head ───────────────────────────► Body ─────────────────► Head   (a frame)
//!    │  complete head, length > max
//!    └──────────────────────────────► Skip ──► Tail ─────────► Head   (reported immediately)
//!                                      ▲
//!                of a message ──── Start: waits for its first bytes, because they contain its id
//! ```

use std::ops::Range;

use super::fault::Fault;
use super::head::Head;
use crate::framing::{NETSTRING_DIGITS_MAX, Width};
use crate::jsonrpc::START_MAX;

/// The form of the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    Len(Width),
    Netstring,
    Head,
}

#[derive(Debug)]
pub(super) struct Announced {
    prefix: Prefix,
    frame_max: usize,
    ahead: Ahead,
    /// The bytes that the last step skipped of a frame that is too long: their range in the bytes given to that step.
    passed: Range<usize>,
}

/// The state. In `Head`, `Body` and `Start`, no byte of the current frame is consumed.
#[derive(Debug)]
enum Ahead {
    /// A head that may be incomplete.
    Head(Head),
    /// An incomplete frame: the lengths of its head and of its body, in bytes.
    Body { head: usize, body: usize },
    /// The beginning of a message that is too long: the length of its head, the length of its body (`announced`), and
    /// the number of body bytes to wait for (`wanted`).
    Start { head: usize, announced: u64, wanted: usize },
    /// The remaining bytes of a frame that is too long, followed by its tail.
    Skip { left: u64 },
}

pub(super) enum Found {
    Frame(Range<usize>),
    TooLong(u64),
    /// The end of a frame that was reported as too long.
    Passed,
    Broken(Fault),
}

/// A complete head: its length, and the length of the body.
struct Length {
    head: usize,
    announced: u64,
}

impl Announced {
    pub(super) const fn new(prefix: Prefix, frame_max: usize) -> Self {
        Self { prefix, frame_max, ahead: Ahead::Head(Head::new()), passed: 0..0 }
    }

    pub(super) const fn is_skipping(&self) -> bool {
        matches!(self.ahead, Ahead::Skip { .. })
    }

    /// The bytes that the last step skipped of a frame that had been reported as too long: their range in the given
    /// bytes.
    pub(super) fn passed(&self) -> Range<usize> {
        self.passed.clone()
    }

    pub(super) fn next(&mut self, bytes: &[u8], from: &mut usize) -> Option<Found> {
        self.passed = 0..0;
        loop {
            let rest = bytes.get(*from..)?;
            match self.ahead {
                Ahead::Head(_) => match self.head(rest)? {
                    Ok(length) => {
                        if let Some(found) = self.begin(&length, rest, from) {
                            return Some(found);
                        }
                    }
                    Err(fault) => return Some(Found::Broken(fault)),
                },
                Ahead::Body { head, body } => return self.body(rest, from, head, body),
                Ahead::Start { head, announced, wanted } => {
                    if rest.len() < head + wanted {
                        return None;
                    }
                    *from += head;
                    self.ahead = Ahead::Skip { left: announced };
                    return Some(Found::TooLong(announced));
                }
                Ahead::Skip { left } => {
                    let length = left.min(rest.len() as u64);
                    let start = *from;
                    *from += usize::try_from(length).expect("at most the length of the rest");
                    self.passed = start..*from;
                    self.ahead = Ahead::Skip { left: left - length };
                    if left > length {
                        return None;
                    }
                    match (self.tail_length(), bytes.get(*from)) {
                        (0, _) | (_, Some(b',')) => {}
                        (_, None) => return None,
                        (_, Some(_)) => return Some(Found::Broken(Fault::NetstringComma)),
                    }
                    *from += self.tail_length();
                    self.ahead = Ahead::Head(Head::new());
                    return Some(Found::Passed);
                }
            }
        }
    }

    /// Parses the head of the current frame. `None` if it is incomplete.
    fn head(&mut self, rest: &[u8]) -> Option<Result<Length, Fault>> {
        if rest.is_empty() {
            return None;
        }
        match self.prefix {
            Prefix::Len(width) => {
                let prefix = rest.get(..width.bytes())?;
                let announced = prefix.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
                Some(Ok(Length { head: width.bytes(), announced }))
            }
            Prefix::Netstring => netstring(rest),
            Prefix::Head => {
                let Ahead::Head(head) = &mut self.ahead else { return None };
                let found = head.next(rest)?;
                Some(found.map(|(head, announced)| Length { head, announced }))
            }
        }
    }

    /// Handles a complete head: waits for the frame, or reports and skips it.
    fn begin(&mut self, length: &Length, rest: &[u8], from: &mut usize) -> Option<Found> {
        let announced = length.announced;
        match usize::try_from(announced) {
            Ok(body) if body <= self.frame_max => {
                self.ahead = Ahead::Body { head: length.head, body };
                None
            }
            _ if self.is_text(&rest[..length.head]) => Some(Found::Broken(Fault::Text)),
            _ if self.prefix == Prefix::Head => {
                // At most the bytes that a stream may buffer for a frame within the limit.
                let wanted = START_MAX.min(self.frame_max);
                self.ahead = Ahead::Start { head: length.head, announced, wanted };
                None
            }
            _ => {
                *from += length.head;
                self.ahead = Ahead::Skip { left: announced };
                Some(Found::TooLong(announced))
            }
        }
    }

    /// Whether a length over the limit is probably text. Only a prefix of four bytes is long enough to decide this.
    fn is_text(&self, head: &[u8]) -> bool {
        self.prefix == Prefix::Len(Width::Four) && head.iter().all(|&byte| is_printable(byte))
    }

    fn body(&mut self, rest: &[u8], from: &mut usize, head: usize, body: usize) -> Option<Found> {
        let end = head.saturating_add(body);
        let total = end.saturating_add(self.tail_length());
        if rest.len() < total {
            return None;
        }
        if !matches!(rest[end..total], [] | [b',']) {
            return Some(Found::Broken(Fault::NetstringComma));
        }
        let start = *from;
        *from += total;
        self.ahead = Ahead::Head(Head::new());
        Some(Found::Frame(start + head..start + end))
    }

    /// The length of the tail, in bytes: the comma of a netstring.
    fn tail_length(&self) -> usize {
        usize::from(self.prefix == Prefix::Netstring)
    }
}

/// Parses the length of the current netstring: digits without leading zeros, and a colon.
fn netstring(rest: &[u8]) -> Option<Result<Length, Fault>> {
    let mut announced = 0;
    for (place, &byte) in rest.iter().enumerate() {
        match byte {
            b':' if place > 0 => return Some(Ok(Length { head: place + 1, announced })),
            b'0'..=b'9' if place < NETSTRING_DIGITS_MAX && (place == 0 || announced > 0) => {
                announced = announced * 10 + u64::from(byte - b'0');
            }
            _ => return Some(Err(Fault::NetstringLength)),
        }
    }
    None
}

/// Whether a byte can occur in ASCII text.
pub(super) const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}
