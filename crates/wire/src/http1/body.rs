//! Separates the bytes of a body from the following bytes, and determines which of them can be forwarded unchanged.

use super::chunked::{Chunked, Kind, Span, counted};
use super::{Limits, Refusal};

/// The length of a body, as determined by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// No body.
    None,
    /// The length in bytes.
    Length(u64),
    /// Chunked: the last chunk is empty.
    Chunked,
    /// Up to the end of the stream. For replies only.
    UntilEnd,
}

impl BodyKind {
    /// Whether the message can have a body of at least one byte.
    #[must_use]
    pub const fn is_some(self) -> bool {
        !matches!(self, Self::None | Self::Length(0))
    }
}

/// How the bytes at the front are forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The number of bytes to forward unchanged.
    pub pass: usize,
    /// The number of these bytes that are data of the body, not framing.
    pub data: usize,
    /// The number of following bytes that belong to the body and must not be forwarded.
    pub drop: usize,
}

/// A chunked body that was received completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeChunks {
    /// The length of the data, in bytes.
    pub data: usize,
    /// The length including all framing, in bytes.
    pub used: usize,
}

impl WholeChunks {
    /// Checks whether the chunked body at the front is complete and can be forwarded with a length instead of chunks.
    /// `None` if it has a trailer that must be forwarded, or if it violates a rule.
    #[must_use]
    pub fn find(bytes: &[u8], limits: &Limits) -> Option<Self> {
        let mut chunked = Chunked::new(limits);
        let mut whole = Self { data: 0, used: 0 };
        while !chunked.is_done() {
            let span = chunked.next(&bytes[whole.used..], limits).ok()??;
            if span.kind == Kind::Data {
                whole.data += span.length;
            }
            whole.used += span.length;
        }
        (!chunked.has_trailer()).then_some(whole)
    }

    /// Appends the data of the body, which is at the front of `bytes`.
    pub fn copy(self, bytes: &[u8], limits: &Limits, out: &mut Vec<u8>) {
        let (mut chunked, mut rest) = (Chunked::new(limits), &bytes[..self.used]);
        while let Ok(Some(span)) = chunked.next(rest, limits) {
            let (part, behind) = rest.split_at(span.length);
            if span.kind == Kind::Data {
                out.extend_from_slice(part);
            }
            rest = behind;
        }
    }
}

/// A body that is being received.
///
/// The caller passes the received bytes and discards as many as reported, until [`Self::is_done`]. The remaining bytes
/// belong to the next message. If nothing is reported because a trailer is incomplete, the caller passes the same bytes
/// again together with the next ones.
#[derive(Debug)]
pub struct Body {
    state: State,
}

#[derive(Debug)]
enum State {
    Done,
    Length { left: u64 },
    Chunked(Chunked),
    UntilEnd { left: u64 },
}

impl Body {
    /// Creates the body for a head with this body kind.
    #[must_use]
    pub fn new(kind: BodyKind, limits: &Limits) -> Self {
        let state = match kind {
            BodyKind::None | BodyKind::Length(0) => State::Done,
            BodyKind::Length(left) => State::Length { left },
            BodyKind::Chunked => State::Chunked(Chunked::new(limits)),
            BodyKind::UntilEnd => State::UntilEnd { left: limits.body },
        };
        Self { state }
    }

    /// Creates an empty body.
    #[must_use]
    pub const fn none() -> Self {
        Self { state: State::Done }
    }

    /// Whether the whole body was received.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Classifies the bytes at the front, one kind at a time. `None` if no more bytes can be classified.
    ///
    /// # Errors
    /// If the bytes violate a rule or exceed a limit.
    pub fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Span>, Refusal> {
        let span = match &mut self.state {
            State::Done => return Ok(None),
            State::Length { left } => Span { kind: Kind::Data, length: counted(left, bytes.len()) },
            State::UntilEnd { left } => {
                let length = counted(left, bytes.len());
                if length < bytes.len() {
                    return Err(Refusal::BodyTooLong);
                }
                Span { kind: Kind::Data, length }
            }
            State::Chunked(chunked) => match chunked.next(bytes, limits)? {
                Some(span) => span,
                None => return Ok(None),
            },
        };
        let done = match &self.state {
            State::Length { left } => *left == 0,
            State::Chunked(chunked) => chunked.is_done(),
            State::Done | State::UntilEnd { .. } => false,
        };
        if done {
            self.state = State::Done;
        }
        Ok((span.length > 0).then_some(span))
    }

    /// The number of bytes at the front that can be forwarded unchanged, including framing, to a peer that uses
    /// HTTP/1.1.
    ///
    /// # Errors
    /// If the bytes violate a rule or exceed a limit.
    pub fn run(&mut self, bytes: &[u8], limits: &Limits) -> Result<Run, Refusal> {
        let mut run = Run::default();
        while let Some(rest) = bytes.get(run.pass..).filter(|rest| !rest.is_empty()) {
            let Some(span) = self.next(rest, limits)? else { break };
            if span.kind == Kind::Drop {
                run.drop = span.length;
                break;
            }
            run.pass += span.length;
            if span.kind == Kind::Data {
                run.data += span.length;
            }
        }
        Ok(run)
    }

    /// The number of following bytes that can be forwarded without parsing.
    #[must_use]
    pub const fn ahead(&self) -> u64 {
        match &self.state {
            State::Done => 0,
            State::Length { left } | State::UntilEnd { left } => *left,
            State::Chunked(chunked) => chunked.ahead(),
        }
    }

    /// Records that `count` bytes were forwarded without parsing.
    ///
    /// # Panics
    /// If `count` is larger than [`Self::ahead`], because the following bytes would be parsed as another message.
    pub fn passed(&mut self, count: u64) {
        assert!(count <= self.ahead(), "no more goes on unseen than lies ahead");
        match &mut self.state {
            State::Done => {}
            State::Length { left } => {
                *left -= count;
                if *left == 0 {
                    self.state = State::Done;
                }
            }
            State::UntilEnd { left } => *left -= count,
            State::Chunked(chunked) => chunked.passed(count),
        }
    }

    /// Handles the end of the stream.
    ///
    /// # Errors
    /// If the body does not end there.
    pub fn end(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Done | State::UntilEnd { .. } => {
                self.state = State::Done;
                Ok(())
            }
            State::Length { .. } | State::Chunked(_) => Err(Refusal::Truncated),
        }
    }
}
