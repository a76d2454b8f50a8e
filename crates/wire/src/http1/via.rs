//! The `Via` field (RFC 9110 §7.6.3): the lines that a proxy adds, made once.

use super::Version;
use super::grammar::{is_authority, token_length};

/// What we add to messages that we forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    /// For messages received in HTTP/1.0 and in HTTP/1.1; empty: nothing is added.
    http10: Box<[u8]>,
    http11: Box<[u8]>,
}

impl Via {
    /// Adds nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds this name of the proxy: a pseudonym (a token), or a host with or without a port. None when it
    /// is neither.
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

    /// The line for a message received in this version, with its CR LF; empty where nothing is added.
    #[must_use]
    pub fn line(&self, received: Version) -> &[u8] {
        match received {
            Version::Http10 => &self.http10,
            Version::Http11 => &self.http11,
        }
    }
}
