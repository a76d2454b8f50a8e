//! A notification on its way.

use exchange::{RequestId, Slice};

use crate::form::Form;

/// A notification that is written and not read.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) id: RequestId,
    /// As it was asked, to be given back if it never leaves us.
    pub(super) body: Slice,
    pub(super) form: Form,
    /// Bytes offered before it.
    pub(super) start: u64,
}
