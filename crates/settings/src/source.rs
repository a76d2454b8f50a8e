//! The text of a configuration file.

/// The prefix of every rendered command line.
pub(crate) const COMMAND: &str = "roadstead run";

/// The text of a configuration and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the file in messages.
    pub name: String,
    /// The content of the file.
    pub text: String,
}
