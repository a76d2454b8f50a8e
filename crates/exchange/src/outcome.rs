//! The result of a request.

use crate::{Cause, End, Phase, Slice};

/// The reply to a request, or the reason why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply, without framing.
    Reply(Slice),
    /// The request ended without a reply. The text is for a person and contains no line end, except if a worker died:
    /// see [`Self::died`].
    Ended(End, Slice),
    /// The request was refused. The client receives this text as if it were a reply.
    Fallback(End, Slice),
}

impl Outcome {
    /// Creates an end with a text that gives more detail than the cause.
    #[must_use]
    pub fn ended(cause: Cause, phase: Phase, text: &str) -> Self {
        Self::Ended(End::new(cause, phase), Slice::from(text))
    }

    /// Creates the outcome of a request whose worker died. `line` is the text for clients that can receive one line.
    /// `more` is the text for clients that can receive several lines; `None`: they receive the meaning of the cause.
    #[must_use]
    pub fn died(phase: Phase, line: &str, more: Option<&str>) -> Self {
        let text = more.map(|more| format!("{line}\n{more}"));
        Self::ended(Cause::Died, phase, text.as_deref().unwrap_or(line))
    }

    /// The text for clients that can receive one line, and the text for clients that can receive several lines.
    #[must_use]
    pub fn text(&self) -> (&[u8], Option<&[u8]>) {
        match self {
            Self::Ended(End { cause: Cause::Died, .. }, text) => {
                let mut halves = text.splitn(2, |byte| *byte == b'\n');
                (halves.next().unwrap_or_default(), halves.next())
            }
            Self::Reply(text) | Self::Ended(_, text) | Self::Fallback(_, text) => (text, None),
        }
    }

    /// The end of the request.
    #[must_use]
    pub fn end(&self) -> End {
        match self {
            Self::Reply(_) => End::new(Cause::Answered, Phase::Reply),
            Self::Ended(end, _) | Self::Fallback(end, _) => *end,
        }
    }
}
