//! Places of secrets.

use std::path::PathBuf;

/// The place of a text that is not in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The daemon's variable of this name, written `env:NAME`.
    Environment(String),
    /// The content of the file, without a trailing line end; written `file:PATH`.
    File(PathBuf),
}
