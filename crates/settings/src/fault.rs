//! An error before it is rendered: a span and messages. `diagnostics` converts the span to a line and a column.

use std::ops::Range;

/// How reliable a fault is when the text around it could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The text is not TOML here.
    Syntax,
    /// A value that was parsed is wrong.
    Found,
    /// Something is missing. It may be in a part that could not be parsed.
    Absent,
}

/// An error before it is rendered: a span in bytes and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) trust: Trust,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) suggestion: Option<String>,
}

impl Fault {
    /// Returns a fault at `span`.
    pub(crate) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            trust: Trust::Found,
            message: message.into(),
            expected: None,
            suggestion: None,
        }
    }

    /// Adds what is expected at this place.
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds a suggested fix.
    pub(crate) fn suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds a suggested fix, if there is one.
    pub(crate) fn suggested(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Changes all texts of the fault.
    pub(crate) fn reworded(&mut self, reword: impl Fn(&str) -> String) {
        self.message = reword(&self.message);
        self.expected = self.expected.as_deref().map(&reword);
        self.suggestion = self.suggestion.as_deref().map(&reword);
    }

    /// Sets how reliable the fault is.
    pub(crate) fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }
}

/// Adds a fault at each place that exists if its condition holds: `PLACE, if CONDITION => MESSAGE, expected TEXT, help
/// TEXT;`. Only the place and the message are required.
macro_rules! reject {
    ($faults:expr; $($place:expr $(, if $condition:expr)? => $message:expr
        $(, expected $expected:expr)? $(, help $help:expr)?;)+) => {$(
        if let Some(place) = $place $(&& $condition)? {
            $faults.push(
                $crate::fault::Fault::at(place, $message)
                    $(.expected($expected))?
                    $(.suggestion($help))?,
            );
        }
    )+};
}
pub(crate) use reject;

/// Returns the nearest position at or before `at` where a character begins.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    // At most three steps, because a UTF-8 character has at most four bytes.
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
