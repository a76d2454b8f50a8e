//! The `Via` field (RFC 9110 §7.6.3): the lines that a proxy adds. They are formatted once.

use super::Version;
use super::grammar::{is_authority, token_length};

/// The `Via` lines that are added to forwarded messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    /// The lines for messages received in HTTP/1.0 and in HTTP/1.1. If they are empty, nothing is added.
    http10: Box<[u8]>,
    http11: Box<[u8]>,
}

impl Via {
    /// Creates a value that adds no lines.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates the lines with this name of the proxy: a pseudonym (a token), or a host with an optional port. `None` if
    /// the name is neither.
    ///
    /// ```
    /// use wire::http1::{Version, Via};
    /// let via = Via::new("edge").unwrap();
    /// assert_eq!(via.line(Version::Http10), b"Via: 1.0 edge\r\n");
    /// assert!(Via::new("two words").is_none());
    /// ```
    #[must_use]
    pub fn new(received_by: &str) -> Option<Self> {
        let bytes = received_by.as_bytes();
        let is_token = !bytes.is_empty() && token_length(bytes) == bytes.len();
        if !is_token && !is_authority(bytes) {
            return None;
        }
        let line = |version| format!("Via: {version} {received_by}\r\n").into_bytes().into();
        Some(Self { http10: line("1.0"), http11: line("1.1") })
    }

    /// The line for a message received in this version, with its CR LF. Empty if nothing is added.
    #[must_use]
    pub fn line(&self, received: Version) -> &[u8] {
        match received {
            Version::Http10 => &self.http10,
            Version::Http11 => &self.http11,
        }
    }
}
