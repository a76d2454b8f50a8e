//! What a client of the admin address may do.

/// What a client may do.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Role {
    /// Read metrics and status.
    Viewer,
    /// Everything.
    Admin,
}
