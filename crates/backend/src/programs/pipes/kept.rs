//! State of notifications that were not read, and of an output that is paused.

use std::time::Instant;

use exchange::{RequestId, Slice};

use super::original::Original;
use flow::request_meta::RequestMeta;

/// A notification that is written and not read yet.
#[derive(Debug)]
pub(super) struct PendingNotification {
    pub(super) id: RequestId,
    /// The bytes that were written.
    pub(super) body: Slice,
    /// The notification before it was written, to be returned if it is never sent.
    pub(super) original: Original,
    pub(super) meta: RequestMeta,
    /// Bytes offered before it.
    pub(super) start: u64,
}

/// Why a program's output is not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPause {
    pub(super) since: Instant,
    pub(super) by: PausedBy,
}

/// Which client does not read: the client of this request, the client of a session program, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PausedBy {
    pub(super) request: Option<RequestId>,
    pub(super) owner: bool,
}
