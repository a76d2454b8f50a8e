//! Keys: properties of a request or its client.

use std::fmt;

/// A property of a request or its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The address of the client, without its port.
    Source,
    /// The connection of the client, on any listener. A datagram has none.
    Connection,
    /// The whole request.
    Line,
    /// A word of the request, counted from 1. Words are separated by blanks and tabs.
    Word(u32),
    /// The value of `NAME=value` among the words of the request.
    Field(String),
    /// A member of a request that is a JSON object.
    Member(String),
    /// A field of the head of an HTTP request.
    Header(String),
    /// A cookie of an HTTP request.
    Cookie(String),
    /// The path of an HTTP request, without the query.
    Path,
    /// A segment of the path of an HTTP request, counted from 1, undecoded. Segments are separated by `/`.
    Segment(u32),
    /// A parameter of the query of an HTTP request, undecoded.
    Query(String),
}

impl Key {
    /// Whether the key exists in HTTP requests, or in other requests; `None`: in both.
    #[must_use]
    pub const fn is_http(&self) -> Option<bool> {
        match self {
            Self::Source | Self::Connection => None,
            Self::Line | Self::Word(_) | Self::Field(_) | Self::Member(_) => Some(false),
            Self::Header(_) | Self::Cookie(_) | Self::Path | Self::Segment(_) | Self::Query(_) => {
                Some(true)
            }
        }
    }
}

impl fmt::Display for Key {
    /// Formats the key as it is written in a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("source"),
            Self::Connection => f.write_str("connection"),
            Self::Line => f.write_str("line"),
            Self::Word(number) => write!(f, "word:{number}"),
            Self::Field(name) => write!(f, "field:{name}"),
            Self::Member(name) => write!(f, "member:{name}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Path => f.write_str("path"),
            Self::Segment(number) => write!(f, "segment:{number}"),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}
