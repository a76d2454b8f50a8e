//! Whose ears what a connection's own program says unasked is for.

/// Who hears what a program says unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UnsolicitedTo {
    /// Nobody: it is not to be trusted.
    #[default]
    Nobody,
    /// The client whose own it is.
    Client,
    /// Nobody any more. It serves no other client, so there is nothing to mistake it for.
    Gone,
}
