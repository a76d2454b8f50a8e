//! Patterns: `*` stands for any bytes but slashes, `**` for any bytes.
//!
//! A pattern is a machine whose states are the places in it, all followed at once, one bit each: so
//! a text costs a few steps a byte whatever it and the pattern are, and nobody can make a look-up
//! dear.

use std::fmt;

/// Characters and stars of a pattern.
pub const PATTERN_MAX: usize = 127;

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternFault {
    /// It has more than [`PATTERN_MAX`] characters and stars.
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
    /// What all that fits begins with.
    front: Box<[u8]>,
    /// By byte: the places at which it stands.
    stands: Box<[u128; 256]>,
    /// Places of stars, and of those that stop at a slash.
    stars: u128,
    narrow: u128,
    /// The place behind the last.
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
    /// The pattern of this text.
    ///
    /// # Errors
    /// When it is too long.
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
            // The bit of the place behind this one must be there too.
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

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether all of `text` fits.
    #[must_use]
    pub fn fits(&self, text: &[u8]) -> bool {
        // Most texts that do not fit differ early.
        if !text.starts_with(&self.front) {
            return false;
        }
        let begun = 1_u128 << self.front.len();
        // A star may stand for nothing; no two stand side by side.
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
