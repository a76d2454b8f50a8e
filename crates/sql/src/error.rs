//! What is wrong with a statement.

use std::fmt;

/// Why a statement cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// For a person.
    pub text: String,
    /// Which byte of the statement it is about, counted from 0, where that is known.
    pub at: Option<usize>,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SqlError {}
