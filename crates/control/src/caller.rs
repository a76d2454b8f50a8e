//! The client of a request.

/// The client of a request, as the audit log names it.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) String);
