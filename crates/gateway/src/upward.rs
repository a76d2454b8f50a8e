//! What workers report to their pool and to the exchanges.

use std::cell::RefCell;

use event::StreamId;
use exchange::{Outcome, RequestId, Slice, WorkerId};

use crate::form::Form;

/// The head of a reply, before its parts.
pub(crate) use wire::http1::ReplyHead as Head;

/// A head on its way, in a place that is used again: it is several times as large as anything else
/// that is reported, and would make every report as large.
#[derive(Debug)]
pub(crate) struct Carried(Box<Option<Head>>);

/// Places that a thread keeps.
const PLACES_MAX: usize = 64;

thread_local! {
    static PLACES: RefCell<Vec<Carried>> = const { RefCell::new(Vec::new()) };
}

impl Carried {
    pub(crate) fn new(head: Head) -> Self {
        let place = PLACES.with_borrow_mut(Vec::pop);
        let mut place = place.unwrap_or_else(|| Self(Box::default()));
        *place.0 = Some(head);
        place
    }

    pub(crate) fn head(&mut self) -> &mut Head {
        self.0.as_mut().as_mut().expect("a place has its head until that is taken")
    }

    /// The head itself; its place is kept.
    pub(crate) fn into_head(mut self) -> Head {
        let head = self.0.take().expect("a place has its head until that is taken");
        PLACES.with_borrow_mut(|places| {
            if places.len() < PLACES_MAX {
                places.push(self);
            }
        });
        head
    }

    /// Nobody wants it.
    pub(crate) fn recycle(self) {
        self.into_head().recycle();
    }
}

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
        head: Carried,
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
    /// Much of a reply is still to come, which goes on as it lies: whoever takes it need not look.
    Long {
        id: RequestId,
        from: StreamId,
    },
    /// So many bytes of it went on without being looked at, and whether that was all that does.
    Relayed {
        id: RequestId,
        count: u64,
        done: bool,
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
    /// It may be given to another worker; `failed`: the one that failed it.
    Again {
        id: RequestId,
        body: Slice,
        form: Form,
        failed: Option<WorkerId>,
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
    /// All shards together have more links to it than it has slots.
    Short {
        worker: WorkerId,
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
