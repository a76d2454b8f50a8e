//! The words of a message, as an operator counts them.

use std::ops::Range;

/// Where the words of a request stand.
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
