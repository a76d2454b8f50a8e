//! What a worker gives back for a request.

use crate::{Cause, End, Phase, Slice};

/// The answer to one request, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply, without its framing.
    Reply(Slice),
    /// It ended otherwise. The text is for a person and holds no line end.
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

    /// The end that this outcome is.
    #[must_use]
    pub fn end(&self) -> End {
        match self {
            Self::Reply(_) => End::new(Cause::Answered, Phase::Reply),
            Self::Ended(end, _) | Self::Sorry(end, _) => *end,
        }
    }
}
