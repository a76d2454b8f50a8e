//! How a reply is told over HTTP that has no head of its own.

/// What our own words are.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The status and the type of a reply without a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainReply {
    pub status: u16,
    pub content_type: &'static str,
}

impl PlainReply {
    /// A text.
    pub const TEXT: Self = Self { status: 200, content_type: TEXT };
    /// The acknowledgement of a record.
    pub const STORED: Self = Self { status: 201, content_type: TEXT };
}
