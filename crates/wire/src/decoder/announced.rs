//! Frames whose length comes first.
//!
//! ```text
//!            head whole, length ≤ max            all there
//!   Head ───────────────────────────► Body ─────────────────► Head   (a frame)
//!    │  head whole, length > max
//!    └──────────────────────────────► Skip ──► Tail ─────────► Head   (reported at once)
//!                                      ▲
//!                     of a message ── Start: its beginning is waited for, so that it can be named
//! ```

use std::ops::Range;

use super::fault::Fault;
use super::head::Head;
use crate::framing::{NETSTRING_DIGITS_MAX, Width};
use crate::jsonrpc::START_MAX;

/// What says the length.
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
    /// What the last step passed over of a frame that is too long, in the bytes shown then.
    passed: Range<usize>,
}

/// What comes next. `Head` and `Body` are about the frame at the front, of which nothing was
/// consumed.
#[derive(Debug)]
enum Ahead {
    /// A head of which something may have come.
    Head(Head),
    /// The rest of a frame whose head has so many bytes, and whose body so many.
    Body { head: usize, body: usize },
    /// The beginning of a message that is too long: its head has so many bytes, its body `announced`.
    Start { head: usize, announced: u64, wanted: usize },
    /// Bytes of a frame that is too long, and then its tail.
    Skip { left: u64 },
}

pub(super) enum Found {
    Frame(Range<usize>),
    TooLong(u64),
    /// The end of a frame that was reported as too long.
    Passed,
    Broken(Fault),
}

/// A whole head.
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

    /// What the last step passed over of a frame that had been reported as too long, in the bytes shown.
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

    /// The head at the front, once it is whole.
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

    /// A head is whole: its frame is waited for, or passed over and reported.
    fn begin(&mut self, length: &Length, rest: &[u8], from: &mut usize) -> Option<Found> {
        let announced = length.announced;
        match usize::try_from(announced) {
            Ok(body) if body <= self.frame_max => {
                self.ahead = Ahead::Body { head: length.head, body };
                None
            }
            _ if self.is_text(&rest[..length.head]) => Some(Found::Broken(Fault::Text)),
            _ if self.prefix == Prefix::Head => {
                // Within what a stream holds for a frame that is not too long.
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

    /// Whether a length over the limit is rather text. Only four bytes are enough to tell.
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

    /// Bytes behind a body: the comma of a netstring.
    fn tail_length(&self) -> usize {
        usize::from(self.prefix == Prefix::Netstring)
    }
}

/// The length of the netstring at the front: digits without leading zeros, and a colon.
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

/// What a text in ASCII is made of.
pub(super) const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}
