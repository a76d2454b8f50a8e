//! Finds frames in the bytes of one direction of a stream, for all framings.
//!
//! ```
//! use wire::{Decoder, Framing, OversizePolicy, Piece};
//!
//! let mut decoder = Decoder::new(Framing::Netstring, 10, OversizePolicy::Skip);
//! let bytes = b"3:one,0:,3:tw";
//! let mut from = 0;
//! assert_eq!(decoder.next(bytes, &mut from), Some(Piece::Frame(2..5)));
//! assert_eq!(decoder.next(bytes, &mut from), Some(Piece::Frame(8..8)));
//! assert_eq!(decoder.next(bytes, &mut from), None);
//! assert_eq!(decoder.consume(bytes.len(), from), 9);
//! ```

use std::ops::Range;

use crate::framing::Framing;
use crate::jsonrpc::{START_MAX, Skim, Skimmed};
use crate::lines::{self, Lines};
use announced::{Announced, Found, Prefix, is_printable};
pub use fault::Fault;

mod announced;
mod fault;
mod head;

/// How a stream continues after a frame over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OversizePolicy {
    /// The frame is reported and skipped, and the next frame is read.
    Skip,
    /// The stream is [`Broken`](Piece::Broken).
    End,
}

/// An item that the decoder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A frame without its envelope: its range in the given bytes. A chunk for `raw`.
    Frame(Range<usize>),
    /// A frame over the limit. It is reported once, as soon as the length is known to exceed the limit.
    TooLong {
        /// The length of the frame, if the framing contains it.
        announced: Option<u64>,
    },
    /// The type of a message that was reported as too long. It is reported once, as soon as the type is known, and only
    /// by a decoder that is [`skimming`](Decoder::skimming).
    Skimmed(Skimmed),
    /// No more frames can be found. It is reported once, and all following bytes are skipped.
    Broken(Fault),
}

/// The result of one step.
enum Step {
    Piece(Piece),
    /// The end of a frame that was reported as too long.
    Passed,
}

/// How the bytes after the last frame are classified at the end of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    /// A frame that is terminated by the end of the stream: `oneshot`.
    Frame(Range<usize>),
    /// A frame without its terminator: its range in the given bytes. The caller decides how to treat it.
    Unterminated(Range<usize>),
    /// A part of a frame.
    Partial,
    /// A frame over the limit that was not reported before.
    TooLong,
}

/// Finds frames in a stream.
///
/// The caller passes all bytes that it has not consumed yet, and calls [`Self::next`] repeatedly. When `next` returns
/// `None`, the caller calls [`Self::consume`] and discards that many bytes. A caller that stops earlier discards the
/// bytes before `from`. No byte is searched twice. The bytes of an incomplete frame never exceed
/// [`Framing::recv_buffer_max`].
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    over: OversizePolicy,
    machine: Machine,
    broken: bool,
    /// The position of the body of the last frame that was reported as too long.
    too_long_at: usize,
    /// Parses the skipped bytes.
    skim: Option<Box<Skim>>,
}

#[derive(Debug)]
enum Machine {
    /// Frames that end with a terminator.
    Marked(Lines),
    /// Frames that begin with their length.
    Announced(Announced),
    /// No frames: chunks of bytes.
    Chunks { chunk_max: usize },
    /// One frame, terminated by the end of the stream.
    Whole { frame_max: usize, skipping: bool },
}

impl Decoder {
    /// Creates a decoder for frames of at most `frame_max` bytes, excluding the envelope. `raw` is divided into chunks
    /// of that size, or of 1 byte if `frame_max` is 0.
    #[must_use]
    pub const fn new(framing: Framing, frame_max: usize, over: OversizePolicy) -> Self {
        let machine = match framing {
            Framing::Lines | Framing::JsonRpc => Machine::Marked(Lines::new(frame_max)),
            Framing::Nul => Machine::Marked(Lines::nul(frame_max)),
            Framing::Len(width) => {
                Machine::Announced(Announced::new(Prefix::Len(width), frame_max))
            }
            Framing::Netstring => Machine::Announced(Announced::new(Prefix::Netstring, frame_max)),
            Framing::ContentLength => Machine::Announced(Announced::new(Prefix::Head, frame_max)),
            Framing::Raw => {
                Machine::Chunks { chunk_max: if frame_max == 0 { 1 } else { frame_max } }
            }
            Framing::Oneshot => Machine::Whole { frame_max, skipping: false },
        };
        Self { framing, over, machine, broken: false, too_long_at: 0, skim: None }
    }

    /// Also reports the types of JSON-RPC messages that are too long.
    #[must_use]
    pub fn skimming(self) -> Self {
        Self { skim: Some(Box::default()), ..self }
    }

    /// The framing of the stream.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the piece at `from`, and moves `from` to its end.
    pub fn next(&mut self, bytes: &[u8], from: &mut usize) -> Option<Piece> {
        if self.broken {
            *from = bytes.len();
            return None;
        }
        let mut piece = loop {
            if let Some(skimmed) = self.skim.as_mut().and_then(|skim| skim.take_result()) {
                return Some(Piece::Skimmed(skimmed));
            }
            let step = self.step(bytes, from);
            let has_passed = self.skim_passed(bytes);
            match step {
                Some(Step::Piece(piece)) => break piece,
                Some(Step::Passed) => {
                    if let Some(skim) = &mut self.skim {
                        skim.finish();
                    }
                }
                None if has_passed => {}
                None => return None,
            }
        };
        if let Piece::TooLong { .. } = piece {
            self.begin_too_long(bytes, *from);
        }
        if self.over == OversizePolicy::End && matches!(piece, Piece::TooLong { .. }) {
            piece = Piece::Broken(Fault::TooLong);
        }
        if let Piece::Broken(_) = piece {
            self.broken = true;
            *from = bytes.len();
        }
        Some(piece)
    }

    /// The type of the message that was too long, if the stream has ended before the type was known.
    pub fn finish_skimming(&mut self) -> Option<Skimmed> {
        let skim = self.skim.as_mut().filter(|_| !self.broken)?;
        skim.finish();
        skim.take_result()
    }

    /// The beginning of the frame that was just reported as too long, in the given bytes. For a message: at most the
    /// bytes in which its id can be. For other frames: the bytes that were received.
    #[must_use]
    pub fn start_of_too_long<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = bytes.get(self.too_long_at..).unwrap_or_default();
        &start[..start.len().min(START_MAX)]
    }

    /// Starts to skip a frame that is too long. Either the bytes before `from` were already skipped, or no bytes.
    fn begin_too_long(&mut self, bytes: &[u8], from: usize) {
        let marked = match &self.machine {
            Machine::Marked(lines) => Some(lines.too_long_at()),
            Machine::Announced(_) | Machine::Chunks { .. } | Machine::Whole { .. } => None,
        };
        self.too_long_at = marked.unwrap_or(from);
        let (Some(skim), Some(start)) = (&mut self.skim, marked) else {
            if let Some(skim) = &mut self.skim {
                skim.begin();
            }
            return;
        };
        skim.begin();
        // The frame may already be complete.
        let is_whole = from > start;
        let end = if is_whole { from } else { bytes.len() };
        skim.feed(bytes.get(start..end).unwrap_or_default());
        if is_whole {
            skim.finish();
        }
    }

    /// Parses the bytes that the last step skipped. Returns false if there were none.
    fn skim_passed(&mut self, bytes: &[u8]) -> bool {
        let Some(skim) = &mut self.skim else { return false };
        let passed = match &self.machine {
            Machine::Marked(lines) => lines.passed(),
            Machine::Announced(announced) => announced.passed(),
            Machine::Chunks { .. } | Machine::Whole { .. } => return false,
        };
        let passed = bytes.get(passed).unwrap_or_default();
        skim.feed(passed);
        !passed.is_empty()
    }

    fn step(&mut self, bytes: &[u8], from: &mut usize) -> Option<Step> {
        Some(Step::Piece(match &mut self.machine {
            Machine::Marked(lines) => loop {
                match lines.step(bytes, from)? {
                    lines::Step::Passed => return Some(Step::Passed),
                    lines::Step::Piece(lines::Piece::TooLong) => {
                        break Piece::TooLong { announced: None };
                    }
                    lines::Step::Piece(lines::Piece::Line(range)) => {
                        if self.framing != Framing::JsonRpc || !is_blank(&bytes[range.clone()]) {
                            break Piece::Frame(range);
                        }
                    }
                }
            },
            Machine::Announced(announced) => match announced.next(bytes, from)? {
                Found::Frame(range) => Piece::Frame(range),
                Found::TooLong(length) => Piece::TooLong { announced: Some(length) },
                Found::Passed => return Some(Step::Passed),
                Found::Broken(fault) => Piece::Broken(fault),
            },
            Machine::Chunks { chunk_max } => {
                let start = *from;
                let length = bytes.get(start..)?.len().min(*chunk_max);
                *from += length;
                (length > 0).then(|| Piece::Frame(start..start + length))?
            }
            Machine::Whole { frame_max, skipping } => {
                let too_long = !*skipping && bytes.get(*from..)?.len() > *frame_max;
                *skipping |= too_long;
                too_long.then_some(Piece::TooLong { announced: None })?
            }
        }))
    }

    /// The number of the `shown` bytes that the caller must discard after [`Self::next`] found no piece at `from`.
    pub fn consume(&mut self, shown: usize, from: usize) -> usize {
        match &mut self.machine {
            _ if self.broken => shown,
            Machine::Marked(lines) => lines.consume(shown, from),
            Machine::Whole { skipping: true, .. } => shown,
            Machine::Announced(_) | Machine::Chunks { .. } | Machine::Whole { .. } => from,
        }
    }

    /// Whether there is an incomplete frame: the last `rest` bytes, or a frame that is being skipped.
    #[must_use]
    pub fn is_begun(&self, rest: usize) -> bool {
        match &self.machine {
            _ if self.broken => false,
            Machine::Marked(lines) => lines.is_begun(rest),
            Machine::Announced(announced) => rest > 0 || announced.is_skipping(),
            Machine::Chunks { .. } => false,
            Machine::Whole { skipping, .. } => rest > 0 || *skipping,
        }
    }

    /// Classifies `rest`, in which [`Self::next`] found no piece, at the end of the stream.
    pub fn finish(&mut self, rest: &[u8]) -> Option<Last> {
        if std::mem::replace(&mut self.broken, true) {
            return None;
        }
        match &mut self.machine {
            Machine::Marked(lines) => match lines.finish(rest)? {
                lines::Piece::TooLong => Some(Last::TooLong),
                lines::Piece::Line(range) => {
                    let blank = self.framing == Framing::JsonRpc && is_blank(&rest[range.clone()]);
                    (!blank).then_some(Last::Unterminated(range))
                }
            },
            Machine::Announced(_) => (!rest.is_empty()).then_some(Last::Partial),
            Machine::Chunks { .. } => None,
            Machine::Whole { skipping: true, .. } => None,
            Machine::Whole { frame_max, .. } if rest.len() > *frame_max => Some(Last::TooLong),
            Machine::Whole { .. } => Some(Last::Frame(0..rest.len())),
        }
    }

    /// Whether the incomplete frame in `rest` looks like text although the framing begins with a binary length. Typical
    /// causes are a stray print statement and a program that uses lines. A length prefix of one or two bytes does not
    /// show this by itself. Call this method when `rest` stays incomplete for too long.
    #[must_use]
    pub fn is_text(&self, rest: &[u8]) -> bool {
        let is_binary = matches!(self.framing, Framing::Len(_));
        is_binary && !rest.is_empty() && rest.iter().all(|&byte| is_printable(byte))
    }
}

/// Whether a line contains only white space of JSON.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests;
