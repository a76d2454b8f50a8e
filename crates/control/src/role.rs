//! The roles of clients of the admin address.

/// The permissions of a client.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Role {
    /// May read metrics and status.
    Viewer,
    /// May do everything.
    Admin,
}
