//! Limits of a message.

/// The limits of messages. Each names the [`Refusal`](super::Refusal) for exceeding it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a request or status line, in bytes: `line-too-long`.
    pub line: usize,
    /// The maximum length of a head including its first line, in bytes, at most 65,535: `head-too-long`.
    pub head: usize,
    /// The maximum number of lines of a head: `too-many-fields`.
    pub fields: u32,
    /// The maximum number of pairs in the cookies of a request: `cookies`.
    pub cookies: usize,
    /// The maximum length of a body without framing, in bytes: `body-too-long`.
    pub body: u64,
    /// The maximum length of the extensions of one chunk, in bytes: `chunk-extension`.
    pub extension: usize,
    /// The maximum length of all extensions of a body, in bytes: `chunk-extension`.
    pub extensions: usize,
    /// The maximum length of all trailers, in bytes: `trailers`.
    pub trailers: usize,
    /// The maximum number of 1xx replies before the final one: `interim`.
    pub interim: u32,
}

impl Limits {
    /// The limits for the fields of a head.
    pub(super) fn of_fields(&self) -> fields::Limits {
        let bytes = u32::try_from(self.head).unwrap_or(u32::MAX);
        // A value may be as long as the head, which has its own limit.
        fields::Limits { fields: self.fields, bytes, value: bytes, ..fields::Limits::default() }
    }

    /// The limits for a request of a client: 8 KiB per line, 16 KiB per head, 100 fields, 180 cookies, 1 MiB of body,
    /// 256 bytes of extensions per chunk and 4 KiB in total, 4 KiB of trailers.
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

    /// The limits for a reply of a server: as for a request, but with a head of 32 KiB, no limit for the body, and 8
    /// replies with status 1xx.
    pub const REPLY: Self = Self { head: 32 << 10, body: u64::MAX, interim: 8, ..Self::REQUEST };
}
