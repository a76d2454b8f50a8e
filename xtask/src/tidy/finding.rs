//! A violation of a rule.

use std::fmt;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A path of the checkout, or a crate.
    pub(super) place: String,
    /// The line, counted from 1, if there is one.
    pub(super) line: Option<usize>,
    /// The problem, and what to do instead.
    pub(super) text: String,
}

impl Finding {
    pub(super) fn new(
        place: &str,
        line: impl Into<Option<usize>>,
        text: impl Into<String>,
    ) -> Self {
        Self { place: place.to_owned(), line: line.into(), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.text),
            None => write!(f, "{}: {}", self.place, self.text),
        }
    }
}
