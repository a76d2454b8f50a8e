//! The HTTP head of a reply whose worker supplies none.

/// The `Content-Type` of texts that the daemon generates.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The status and the `Content-Type` of a reply whose worker supplies no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainReply {
    /// The status code.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
}

impl PlainReply {
    /// A plain text with status 200.
    pub const TEXT: Self = Self { status: 200, content_type: TEXT };
    /// The acknowledgement of a stored record, with status 201.
    pub const STORED: Self = Self { status: 201, content_type: TEXT };
}
