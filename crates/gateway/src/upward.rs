//! What workers report to their pool and to the exchanges.

use exchange::{Outcome, RequestId, Slice, WorkerId};

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
    /// What it occupies now, in bytes.
    Memory {
        worker: WorkerId,
        bytes: u64,
    },
    StderrDropped,
}
