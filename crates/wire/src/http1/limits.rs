//! What a message may have at most.

/// Limits of messages; each names the [`Refusal`](super::Refusal) that follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request or status line: `line-too-long`.
    pub line: usize,
    /// Bytes of a head, its first line included, at most 65,535: `head-too-long`.
    pub head: usize,
    /// Lines of a head: `too-many-fields`.
    pub fields: u32,
    /// Pairs in the cookies of a request: `cookies`.
    pub cookies: usize,
    /// Bytes of a body, without its framing: `body-too-long`.
    pub body: u64,
    /// Bytes of the extensions of one chunk: `chunk-extension`.
    pub extension: usize,
    /// Bytes of all extensions of a body: `chunk-extension`.
    pub extensions: usize,
    /// Bytes of all trailers: `trailers`.
    pub trailers: usize,
    /// Replies of status 1xx before the final one: `interim`.
    pub interim: u32,
}

impl Limits {
    /// What they say of the fields of a head.
    pub(super) fn of_fields(&self) -> fields::Limits {
        let bytes = u32::try_from(self.head).unwrap_or(u32::MAX);
        // A value may be as long as the head: that has its own limit.
        fields::Limits { fields: self.fields, bytes, value: bytes, ..fields::Limits::default() }
    }

    /// Those of a request of a client: 8 KiB a line, 16 KiB a head, 100 fields, 180 cookies, 1 MiB
    /// of body, 256 bytes of extensions a chunk and 4 KiB in all, 4 KiB of trailers.
    pub const REQUEST: Self = Self {
        line: 8 << 10,
        head: 16 << 10,
        fields: 100,
        cookies: 180,
        body: 1 << 20,
        extension: 256,
        extensions: 4 << 10,
        trailers: 4 << 10,
        interim: 0,
    };

    /// Those of a reply of a server: as of a request, a head of 32 KiB, a body without limit, and 8
    /// replies of status 1xx.
    pub const REPLY: Self = Self { head: 32 << 10, body: u64::MAX, interim: 8, ..Self::REQUEST };
}
