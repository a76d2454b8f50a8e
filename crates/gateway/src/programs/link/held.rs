//! Why the output of a program is not read.

use std::time::Instant;

use exchange::RequestId;

/// Why a program's output is not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) since: Instant,
    pub(super) by: Holders,
}

/// Who does not take what it says: the client of this request, or the one whose own it is, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holders {
    pub(super) request: Option<RequestId>,
    pub(super) owner: bool,
}
