//! What is found in a request, or known of its client: keys.

use std::fmt;

/// Something that is found in a request or known of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The client's address, without its port.
    Source,
    /// The client's connection, whatever listener it came by. A datagram has none.
    Connection,
    /// The whole request.
    Line,
    /// A word of it, from 1; blanks and tabs stand between.
    Word(u32),
    /// The value of `NAME=value` among its words.
    Field(String),
    /// A member of the JSON object that it is.
    Member(String),
    /// A field of its head, of HTTP.
    Header(String),
    /// A cookie, of HTTP.
    Cookie(String),
    /// The path, of HTTP, without the query.
    Path,
    /// A part of the path, of HTTP, from 1, as it is written; `/` stands between.
    Segment(u32),
    /// A parameter of the query, of HTTP, as it is written.
    Query(String),
}

impl Key {
    /// Whether it is found in requests of HTTP, or in others; none: in both.
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
    /// As it is written.
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
