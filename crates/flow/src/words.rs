//! Splitting a message into words.

use std::ops::Range;

/// The ranges of the words of `body`, which are separated by spaces or tabs.
pub fn words(body: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = at + body[at..].iter().position(|byte| !blank(byte))?;
        let length = body[start..].iter().position(blank).unwrap_or(body.len() - start);
        at = start + length;
        Some(start..at)
    })
}
