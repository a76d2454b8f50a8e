//! Why no more frames can be found.

use std::fmt;

use crate::framing::HEAD_MAX;

const _: () = assert!(HEAD_MAX == 4096, "the text of `Fault::Head` says it");

/// An error in a stream. The sender of the stream caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A frame is over the limit, and such frames end the stream.
    TooLong,
    /// There is text in the place of a length.
    Text,
    /// The length of a netstring is not a number, has leading zeros or has too many digits.
    NetstringLength,
    /// A netstring does not end with a comma.
    NetstringComma,
    /// A line of the head is not a name, a colon and a value.
    Header,
    /// A line of the head ends with LF without CR.
    LineFeed,
    /// The head is longer than [`HEAD_MAX`].
    Head,
    /// The head does not contain the length of the body.
    NoLength,
    /// The head contains the length of the body twice, or not as a number.
    Length,
}

impl Fault {
    /// All faults.
    pub const ALL: &[Self] = &[
        Self::TooLong,
        Self::Text,
        Self::NetstringLength,
        Self::NetstringComma,
        Self::Header,
        Self::LineFeed,
        Self::Head,
        Self::NoLength,
        Self::Length,
    ];

    /// A description of the fault in one sentence, for a log or a rejection.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::TooLong => "a frame is longer than the limit",
            Self::Text => "there is text where the length of a frame should be",
            Self::NetstringLength => {
                "a netstring begins with its length, in digits without leading zeros, and a colon"
            }
            Self::NetstringComma => "a netstring ends with a comma",
            Self::Header => "a line of the head is a name, a colon and a value",
            Self::LineFeed => "a line of the head ends with CR and LF, not with LF alone",
            Self::Head => "a head has at most 4096 bytes",
            Self::NoLength => "the head has no Content-Length",
            Self::Length => "the head has one Content-Length, and that is a number",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Fault {}
