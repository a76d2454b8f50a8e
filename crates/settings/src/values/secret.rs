//! Secrets, by where they are.

use std::path::PathBuf;

/// A text that does not stand in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The daemon's variable of that name, written `env:NAME`.
    Environment(String),
    /// What the file holds, without a line end at its end; written `file:PATH`.
    File(PathBuf),
}
