//! What a worker gives back for a request.

use crate::{Cause, End, Phase, Slice};

/// The answer to one request, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply, without its framing.
    Reply(Slice),
    /// It ended otherwise. The text is for a person and holds no line end, but where a worker died:
    /// see [`Self::died`].
    Ended(End, Slice),
    /// It was refused, and its client is answered with this as though it were a reply.
    Sorry(End, Slice),
}

impl Outcome {
    /// An ending with a text that says more than the cause.
    #[must_use]
    pub fn ended(cause: Cause, phase: Phase, text: &str) -> Self {
        Self::Ended(End::new(cause, phase), Slice::from(text))
    }

    /// A worker died with the request in its hands: what a line has room for, and what a client is
    /// told that can read more than a line; nothing: what the cause means.
    #[must_use]
    pub fn died(phase: Phase, line: &str, more: Option<&str>) -> Self {
        let text = more.map(|more| format!("{line}\n{more}"));
        Self::ended(Cause::Died, phase, text.as_deref().unwrap_or(line))
    }

    /// What a line has room for of the text of one that ended, and what a client is told that can
    /// read more than a line.
    #[must_use]
    pub fn text(&self) -> (&[u8], Option<&[u8]>) {
        match self {
            Self::Ended(End { cause: Cause::Died, .. }, text) => {
                let mut halves = text.splitn(2, |byte| *byte == b'\n');
                (halves.next().unwrap_or_default(), halves.next())
            }
            Self::Reply(text) | Self::Ended(_, text) | Self::Sorry(_, text) => (text, None),
        }
    }

    /// The end that this outcome is.
    #[must_use]
    pub fn end(&self) -> End {
        match self {
            Self::Reply(_) => End::new(Cause::Answered, Phase::Reply),
            Self::Ended(end, _) | Self::Sorry(end, _) => *end,
        }
    }
}
