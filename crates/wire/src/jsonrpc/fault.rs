//! Why a frame is not a valid message.

use std::fmt;

/// The error in a frame. The sender of the frame caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The frame is not JSON in UTF-8, or is more than one value. Contains the position.
    Syntax(usize),
    /// The values are nested in more than [`DEPTH_MAX`](super::DEPTH_MAX) levels.
    Deep,
    /// The frame is an array: batches are not supported.
    Batch,
    /// The frame is JSON but not an object.
    NotObject,
    /// A member occurs twice.
    Duplicate,
    /// The name of a member differs from a checked name only in case, or is followed by a NUL.
    Case,
    /// The id is not a string, a number or `null`.
    Id,
    /// An id or a token is longer than [`ID_MAX`](super::ID_MAX) bytes.
    IdLong,
    /// The method is not a string, or the message also has a result or an error.
    Method,
    /// The message has neither a method nor a result nor an error, or is a response without an id.
    Nothing,
}

impl Fault {
    /// The code of an error object.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Syntax(_) => -32700,
            _ => -32600,
        }
    }

    /// A description of the fault in one sentence, for a rejection.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Syntax(_) => "it is not one JSON value in UTF-8",
            Self::Deep => "its values are nested too deeply",
            Self::Batch => "batches are not taken: send one message at a time",
            Self::NotObject => "a message is a JSON object",
            Self::Duplicate => "a member is there twice",
            Self::Case => "the name of a member is right but for its case or a NUL",
            Self::Id => "an id is a string, a number or null",
            Self::IdLong => "an id or a token has at most 256 bytes",
            Self::Method => "a method is a string, and stands without a result or an error",
            Self::Nothing => "a message has a method, or an id and a result or an error",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(place) => write!(f, "{} (byte {place})", self.message()),
            _ => f.write_str(self.message()),
        }
    }
}

impl std::error::Error for Fault {}
