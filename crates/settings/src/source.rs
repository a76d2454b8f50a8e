//! A configuration file as it was read.

/// What every rendered command line begins with.
pub(crate) const COMMAND: &str = "roadstead run";

/// The text of a configuration and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as it is shown to people.
    pub name: String,
    /// What is in it.
    pub text: String,
}
