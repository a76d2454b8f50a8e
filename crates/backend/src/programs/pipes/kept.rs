//! What is kept of notifications that were not read, and of an output that is not.

use std::time::Instant;

use exchange::{RequestId, Slice};

use super::original::Original;
use flow::request_meta::RequestMeta;

/// A notification that is written and not read.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) id: RequestId,
    /// As it was written.
    pub(super) body: Slice,
    /// What it was before, to be given back if it never leaves us.
    pub(super) original: Original,
    pub(super) meta: RequestMeta,
    /// Bytes offered before it.
    pub(super) start: u64,
}

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
