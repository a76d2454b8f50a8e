//! Patterns: `*` matches any bytes except slashes, `**` matches any bytes.
//!
//! A pattern is a state machine. Its states are the positions in the pattern. All active states are followed in
//! parallel, one bit for each. Therefore matching takes a few steps per byte for every text and every pattern, and no
//! request can make a lookup expensive.

use std::fmt;

/// The maximum number of characters and stars of a pattern.
pub const PATTERN_MAX: usize = 127;

/// Why a text is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternFault {
    /// The text has more than [`PATTERN_MAX`] characters and stars.
    Long,
}

impl fmt::Display for PatternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "has more than {PATTERN_MAX} characters"),
        }
    }
}

/// A compiled pattern.
#[derive(Clone)]
pub struct Pattern {
    text: Box<[u8]>,
    /// The literal text before the first star. Each text that matches begins with it.
    front: Box<[u8]>,
    /// For each byte: the positions at which the pattern has this byte.
    stands: Box<[u128; 256]>,
    /// The positions of all stars (`stars`), and of the stars that do not match slashes (`narrow`).
    stars: u128,
    narrow: u128,
    /// The position after the last one.
    end: u128,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", String::from_utf8_lossy(&self.text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If the pattern is too long.
    pub fn new(text: &[u8]) -> Result<Self, PatternFault> {
        let front = text.iter().position(|&byte| byte == b'*').unwrap_or(text.len());
        let mut pattern = Self {
            text: text.into(),
            front: text[..front].into(),
            stands: Box::new([0; 256]),
            stars: 0,
            narrow: 0,
            end: 1,
        };
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            // The position after this one needs a bit as well.
            let next = pattern.end.checked_mul(2).ok_or(PatternFault::Long)?;
            let mut length = 1;
            if byte == b'*' {
                length = rest.iter().take_while(|&&byte| byte == b'*').count();
                pattern.stars |= pattern.end;
                pattern.narrow |= if length == 1 { pattern.end } else { 0 };
            } else {
                pattern.stands[usize::from(byte)] |= pattern.end;
            }
            pattern.end = next;
            rest = &rest[length..];
        }
        Ok(pattern)
    }

    /// The text of the pattern.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the pattern matches the whole `text`.
    #[must_use]
    pub fn fits(&self, text: &[u8]) -> bool {
        // Most texts that do not match differ in their first bytes.
        if !text.starts_with(&self.front) {
            return false;
        }
        let begun = 1_u128 << self.front.len();
        // A star may match nothing. Two stars are never adjacent.
        let mut places = begun | (begun & self.stars) << 1;
        for &byte in &text[self.front.len()..] {
            let stars = if byte == b'/' { self.stars & !self.narrow } else { self.stars };
            let next = (places & self.stands[usize::from(byte)]) << 1 | places & stars;
            places = next | (next & self.stars) << 1;
            if places == 0 {
                return false;
            }
        }
        places & self.end != 0
    }
}

#[cfg(test)]
mod tests;
