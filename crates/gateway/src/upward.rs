//! What workers report to their pool and to the exchanges.

use exchange::{Outcome, RequestId, Slice, WorkerId};

use crate::form::Form;

/// The head of a reply, before its parts.
pub(crate) use wire::http1::ReplyHead as Head;

/// One report.
#[derive(Debug)]
pub(crate) enum Upward {
    Answered {
        id: RequestId,
        outcome: Outcome,
    },
    /// It is one to which nothing is answered, and it was done with.
    Unanswered {
        id: RequestId,
    },
    /// The head of a reply, before its parts.
    Head {
        id: RequestId,
        head: Head,
    },
    /// The connection that it was given to is made.
    Linked {
        id: RequestId,
    },
    /// A reply broke a rule.
    Broken {
        refusal: wire::http1::Refusal,
    },
    /// Whether more of the request's body is wanted now.
    Flow {
        id: RequestId,
        wanted: bool,
    },
    /// A part of a reply; more comes.
    Part {
        id: RequestId,
        part: Slice,
    },
    /// A reply that nobody asked for.
    Discarded,
    Released {
        worker: WorkerId,
    },
    /// It never reached the worker.
    Returned {
        id: RequestId,
        body: Slice,
    },
    /// It may be given to another worker.
    Again {
        id: RequestId,
        body: Slice,
        form: Form,
    },
    Started {
        worker: WorkerId,
    },
    StartFailed {
        worker: WorkerId,
    },
    Retired {
        worker: WorkerId,
    },
    Ended {
        worker: WorkerId,
        expected: bool,
    },
    /// A check of it was made.
    Checked {
        worker: WorkerId,
        good: bool,
    },
    /// A request could not be brought to it.
    Unreached {
        worker: WorkerId,
    },
    /// What it occupies now, in bytes.
    Memory {
        worker: WorkerId,
        bytes: u64,
    },
    StderrDropped,
}
