//! Tells the bytes of a body from what follows, and says which of them may go on as they lie.

use super::chunked::{Chunked, Kind, Span, counted};
use super::{Limits, Refusal};

/// How long a body is, as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks, the last of which is empty.
    Chunked,
    /// Up to the end of the stream. Of replies only.
    UntilEnd,
}

impl BodyKind {
    /// Whether there may be a body: one of no bytes is none.
    #[must_use]
    pub const fn is_some(self) -> bool {
        !matches!(self, Self::None | Self::Length(0))
    }
}

/// What becomes of the bytes at the front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// So many go on as they lie.
    pub pass: usize,
    /// So many of those are the body itself, and not its framing.
    pub data: usize,
    /// So many behind them belong to the body and must not go on.
    pub drop: usize,
}

/// A body in chunks that is there to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeChunks {
    /// Bytes of the body itself.
    pub data: usize,
    /// Bytes of it with all framing.
    pub used: usize,
}

impl WholeChunks {
    /// Looks whether the body in chunks at the front is there to its end and can go on with a length
    /// instead. One with trailers that may go on cannot, nor one that breaks a rule.
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

    /// Appends the bytes of the body itself, which is at the front of `bytes`.
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

/// The body that is being received.
///
/// The caller shows what it has and forgets what it is told, until [`Self::is_done`]; bytes that
/// are left then belong to the next message. Where nothing can be told, because a trailer has not
/// ended, it shows them again with the next ones.
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
    /// The body behind a head that says so.
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

    /// No body.
    #[must_use]
    pub const fn none() -> Self {
        Self { state: State::Done }
    }

    /// Whether all of it was shown.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// What the bytes at the front are, one kind at a time. None when there is nothing more to
    /// tell.
    ///
    /// # Errors
    /// When they break a rule or pass a limit.
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

    /// How many of the bytes at the front may go on as they lie, framing and all, towards a peer of
    /// HTTP/1.1.
    ///
    /// # Errors
    /// When they break a rule or pass a limit.
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

    /// How many bytes to come can go on unseen.
    #[must_use]
    pub const fn ahead(&self) -> u64 {
        match &self.state {
            State::Done => 0,
            State::Length { left } | State::UntilEnd { left } => *left,
            State::Chunked(chunked) => chunked.ahead(),
        }
    }

    /// So many bytes went on unseen.
    ///
    /// # Panics
    /// When there were fewer [ahead](Self::ahead): what follows would be read as another message.
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

    /// The stream has ended.
    ///
    /// # Errors
    /// When that is not where the body ends.
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
