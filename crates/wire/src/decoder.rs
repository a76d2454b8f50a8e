//! Finds frames in the bytes of one direction of one stream, whatever the framing.
//!
//! ```
//! use wire::{Decoder, Framing, Over, Piece};
//!
//! let mut decoder = Decoder::new(Framing::Netstring, 10, Over::Skip);
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

/// What becomes of a stream with a frame over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The frame is reported and passed over; the next one is read.
    Skip,
    /// The stream is [`Broken`](Piece::Broken).
    End,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A frame without its envelope, at this place of the bytes shown. A chunk for `raw`.
    Frame(Range<usize>),
    /// A frame over the limit. Reported once, as soon as that is certain.
    TooLong {
        /// Its length, where the framing says it beforehand.
        announced: Option<u64>,
    },
    /// What the message is that was reported as too long. Reported once, as soon as that is certain, by a
    /// decoder that is [`skimming`](Decoder::skimming).
    Skimmed(Skimmed),
    /// No frame can be found any more. Reported once; whatever follows is passed over.
    Broken(Fault),
}

/// What one step found.
enum Step {
    Piece(Piece),
    /// The end of a frame that was reported as too long.
    Passed,
}

/// What the end of a stream makes of the bytes behind the last frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    /// A frame, for the end of the stream is the end of a frame: `oneshot`.
    Frame(Range<usize>),
    /// All of a frame but its end mark, in the bytes shown. Whoever asks decides what it is worth.
    Unterminated(Range<usize>),
    /// A part of a frame.
    Partial,
    /// A frame over the limit that had not been reported.
    TooLong,
}

/// Finds frames.
///
/// The caller shows all bytes that it has not consumed yet and asks for one piece after the other
/// with [`Self::next`]. When there is none it calls [`Self::consume`] and forgets that many. A
/// caller that stops before there is none consumes what lies before `from`. No byte is searched
/// twice, and what waits for its end never exceeds [`Framing::recv_buffer_max`].
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    over: Over,
    machine: Machine,
    broken: bool,
    /// Where the body of the frame begins that was reported last as too long.
    too_long_at: usize,
    /// Reads what is passed over.
    skim: Option<Box<Skim>>,
}

#[derive(Debug)]
enum Machine {
    /// The frame ends with a mark.
    Marked(Lines),
    /// Its length comes first.
    Announced(Announced),
    /// There are no frames.
    Chunks { chunk_max: usize },
    /// The end of the stream ends it.
    Whole { frame_max: usize, skipping: bool },
}

impl Decoder {
    /// Finds frames of at most `frame_max` bytes, envelope excluded. `raw` is divided into chunks
    /// of that size, and of 1 byte when it is 0.
    #[must_use]
    pub const fn new(framing: Framing, frame_max: usize, over: Over) -> Self {
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

    /// Tells of messages in JSON-RPC that are too long what they are, too.
    #[must_use]
    pub fn skimming(self) -> Self {
        Self { skim: Some(Box::default()), ..self }
    }

    /// The framing of the stream.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        self.framing
    }

    /// The piece at `from`, which is moved behind it.
    pub fn next(&mut self, bytes: &[u8], from: &mut usize) -> Option<Piece> {
        if self.broken {
            *from = bytes.len();
            return None;
        }
        let mut piece = loop {
            if let Some(skimmed) = self.skim.as_mut().and_then(|skim| skim.tell()) {
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
        if self.over == Over::End && matches!(piece, Piece::TooLong { .. }) {
            piece = Piece::Broken(Fault::TooLong);
        }
        if let Piece::Broken(_) = piece {
            self.broken = true;
            *from = bytes.len();
        }
        Some(piece)
    }

    /// What the message is that was too long, where the stream has ended before that was certain.
    pub fn finish_skimming(&mut self) -> Option<Skimmed> {
        let skim = self.skim.as_mut().filter(|_| !self.broken)?;
        skim.finish();
        skim.tell()
    }

    /// The beginning of the frame that was found just now to be too long, in the bytes shown: of a
    /// message as much as its id may be in, of others what has come.
    #[must_use]
    pub fn start_of_too_long<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = bytes.get(self.too_long_at..).unwrap_or_default();
        &start[..start.len().min(START_MAX)]
    }

    /// A frame is too long, of which what lies before `from` has been passed over, or nothing.
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
        // Its end may be there already.
        let is_whole = from > start;
        let end = if is_whole { from } else { bytes.len() };
        skim.feed(bytes.get(start..end).unwrap_or_default());
        if is_whole {
            skim.finish();
        }
    }

    /// Reads what was passed over just now. False when that is nothing.
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

    /// How many of the `shown` bytes the caller may forget when [`Self::next`] found no piece at
    /// `from`.
    pub fn consume(&mut self, shown: usize, from: usize) -> usize {
        match &mut self.machine {
            _ if self.broken => shown,
            Machine::Marked(lines) => lines.consume(shown, from),
            Machine::Whole { skipping: true, .. } => shown,
            Machine::Announced(_) | Machine::Chunks { .. } | Machine::Whole { .. } => from,
        }
    }

    /// Whether a frame was begun that has not ended: the last `rest` bytes, or one passed over.
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

    /// What the end of the stream makes of the `rest` in which [`Self::next`] found no piece.
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

    /// Whether the `rest` that waits for its end looks like text although the framing begins with
    /// a binary length: a stray print, or a program that speaks in lines. A length prefix of one or
    /// two bytes cannot tell this by itself, so it is worth asking when the rest has waited in vain.
    #[must_use]
    pub fn is_text(&self, rest: &[u8]) -> bool {
        let is_binary = matches!(self.framing, Framing::Len(_));
        is_binary && !rest.is_empty() && rest.iter().all(|&byte| is_printable(byte))
    }
}

/// White space of JSON only.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests;
