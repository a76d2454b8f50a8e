//! What workers report to their pool and to the exchanges.

use event::StreamId;
use exchange::Proof;
use exchange::{Cause, Outcome, RequestId, Slice, WorkerId};
use wire::http1::Refusal;

use crate::payload::Payload;
use crate::reply_head::Carried;
use crate::request_meta::RequestMeta;

/// Why a pool has no worker: how the last one ended, or why it could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// To clients: of what kind it is. Nothing that a program said or that the configuration names; empty
    /// where `last_words` tells them nothing.
    pub kind: String,
    /// To operators.
    pub detail: String,
}

/// One report.
#[derive(Debug)]
pub enum BackendEvent {
    Answered {
        id: RequestId,
        outcome: Outcome,
    },
    /// Answers of a batch.
    AllAnswered {
        answers: Vec<(RequestId, Outcome)>,
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
        refusal: Refusal,
    },
    /// The response to this request has a status after which it is given to another worker: nobody gets
    /// it.
    RejectedStatus {
        id: RequestId,
        status: u16,
    },
    /// A server sent bytes that no request asked for: its connections are not reused for a while.
    Unrequested,
    /// Whether more of the request's body is wanted now.
    BodyWanted {
        id: RequestId,
        wanted: bool,
    },
    /// Much of a reply is still to come, which goes on as it lies: whoever takes it need not look.
    SpliceOffer {
        id: RequestId,
        from: StreamId,
    },
    /// So many bytes of it went on without being looked at, and whether that was all that does.
    Spliced {
        id: RequestId,
        count: u64,
        done: bool,
    },
    /// No more parts come, though it goes on: its worker has ended its direction of a tunnel.
    ReplyEnd {
        id: RequestId,
    },
    /// A part of a reply; more comes.
    Part {
        id: RequestId,
        part: Slice,
    },
    /// A connection's own program says something that it was not asked.
    Unsolicited {
        worker: WorkerId,
        frame: Slice,
    },
    /// A connection's own program has exited with code 0.
    Finished {
        worker: WorkerId,
    },
    /// A program that clients share says something to all of them.
    Announced {
        frame: Slice,
    },
    /// A reply that nobody asked for.
    Discarded,
    Released {
        worker: WorkerId,
    },
    /// Its start did not fail, whatever becomes of it.
    Proven {
        worker: WorkerId,
        proof: Proof,
    },
    /// The slots of a program are for this client alone, without one for nobody: it may be out of
    /// step with its requests.
    Kept {
        worker: WorkerId,
        client: Option<u64>,
    },
    /// It is not: they are for anybody.
    Open {
        worker: WorkerId,
    },
    /// So many replies of a program may be those to other requests; the ids of the latest of these
    /// requests, as their clients know them.
    Suspect {
        count: u64,
        requests: Vec<u64>,
    },
    /// A program that has answered its reset said something before it was given to another
    /// connection.
    SpokeAfterReset,
    /// It never reached the worker.
    Returned {
        id: RequestId,
        payload: Payload,
    },
    /// It may be given to another worker; `failed`: the one that failed it, and why.
    Retry {
        id: RequestId,
        payload: Payload,
        meta: RequestMeta,
        failed: Option<(WorkerId, Cause)>,
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
        /// Whether anybody reached it since it was started.
        reached: bool,
    },
    /// A check of it was made, which came to this.
    Checked {
        worker: WorkerId,
        good: bool,
        text: String,
    },
    /// Why the pool may have no worker, until one has started.
    Trouble {
        trouble: Box<Trouble>,
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
    /// A client's message was not passed on, because what it names may be another client's.
    Stray,
}
