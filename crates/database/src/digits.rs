//! Text forms of the values of one row that are not text, in one buffer that is reused for the next row.

use std::fmt::Display;
use std::io::Write as _;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

/// Texts of numbers and similar values, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Digits {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Digits {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, number: impl Display) {
        write!(self.bytes, "{number}").expect("a buffer takes what is written to it");
        self.ends.push(self.bytes.len());
    }

    /// Appends bytes that are not text, in base64 with padding (RFC 4648, section 4).
    pub(crate) fn push_base64(&mut self, bytes: &[u8]) {
        self.push(Base64Display::new(bytes, &STANDARD));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}
