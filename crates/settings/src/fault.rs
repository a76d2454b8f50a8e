//! An error on its way: a place and what is said of it. `diagnostics` makes a line and a column of it.

use std::ops::Range;

/// How far a fault can be trusted when the text around it could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The text is not TOML here.
    Syntax,
    /// Something that was read is wrong.
    Found,
    /// Something was not found: it may stand where the text could not be read.
    Absent,
}

/// An error on its way: a place in bytes and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) trust: Trust,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) mend: Option<String>,
}

impl Fault {
    /// Something wrong at `span`.
    pub(crate) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, trust: Trust::Found, message: message.into(), expected: None, mend: None }
    }

    /// What is expected in its place.
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// What to write instead.
    pub(crate) fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }

    /// Changes all that is said.
    pub(crate) fn reworded(&mut self, reword: impl Fn(&str) -> String) {
        self.message = reword(&self.message);
        self.expected = self.expected.as_deref().map(&reword);
        self.mend = self.mend.as_deref().map(&reword);
    }

    /// How far it can be trusted.
    pub(crate) fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }
}

/// The nearest place at or before `at` where a character begins.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    // Three steps at most: that long is a character of UTF-8.
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
