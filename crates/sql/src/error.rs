//! Errors in statements.

use std::fmt;

/// Why a statement cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The message.
    pub text: String,
    /// The byte of the statement that the error refers to, counted from 0, if it is known.
    pub at: Option<usize>,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SqlError {}
