//! Numbers of one row as text, in one buffer that is used again for the next row.

use std::fmt::Display;
use std::io::Write as _;

/// Texts of numbers, each known by the order in which it was added.
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}
