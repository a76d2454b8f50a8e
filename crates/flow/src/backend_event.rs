//! Events from workers to their pool and to the exchanges.

use event::StreamId;
use exchange::Proof;
use exchange::{Cause, Outcome, RequestId, Slice, WorkerId};
use wire::http1::Refusal;

use crate::payload::Payload;
use crate::reply_head::BoxedReplyHead;
use crate::request_meta::RequestMeta;

/// Why a pool has no worker: how the last one exited, or why it could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The kind of failure, for clients. It contains no output of a program and nothing from the configuration. It is
    /// empty when the pool is configured to hide it from clients.
    pub kind: String,
    /// The full text, for operators.
    pub detail: String,
}

/// One event of the workers of a pool.
#[derive(Debug)]
pub enum BackendEvent {
    /// A request has its outcome.
    Answered {
        /// The request.
        id: RequestId,
        /// The reply, or the error.
        outcome: Outcome,
    },
    /// Requests of a batch have their outcomes.
    AllAnswered {
        /// The requests and their outcomes.
        answers: Vec<(RequestId, Outcome)>,
    },
    /// A request that has no reply, such as a notification, is complete.
    Unanswered {
        /// The request.
        id: RequestId,
    },
    /// The head of a reply, before its parts.
    Head {
        /// The request that is answered.
        id: RequestId,
        /// The head of the reply.
        head: BoxedReplyHead,
    },
    /// The connection for a request is established.
    Linked {
        /// The request that was waiting for the connection.
        id: RequestId,
    },
    /// A reply violated its protocol.
    Broken {
        /// The rule that was violated.
        refusal: Refusal,
    },
    /// A response was discarded because of its status. The request is retried on another worker.
    RejectedStatus {
        /// The request that is retried.
        id: RequestId,
        /// The status of the discarded response.
        status: u16,
    },
    /// A server sent bytes without a request. Its connections are not reused for a while.
    Unrequested,
    /// Flow control of a request body.
    BodyWanted {
        /// The request whose body is being sent.
        id: RequestId,
        /// Whether the worker accepts more of the body now.
        wanted: bool,
    },
    /// The rest of a reply body is long and needs no parsing: the client's stream may receive it directly.
    SpliceOffer {
        /// The request that is answered.
        id: RequestId,
        /// The stream that the rest arrives on.
        from: StreamId,
    },
    /// Bytes of a reply body were forwarded from stream to stream.
    Spliced {
        /// The request that is answered.
        id: RequestId,
        /// Bytes that were forwarded.
        count: u64,
        /// Whether the forwarding has ended.
        done: bool,
    },
    /// The worker has closed its direction of a tunnel. The other direction remains open.
    ReplyEnd {
        /// The request that opened the tunnel.
        id: RequestId,
    },
    /// A part of a reply. More follows.
    Part {
        /// The request that is answered.
        id: RequestId,
        /// Bytes of the reply.
        part: Slice,
    },
    /// A program that serves one connection only sent a message that answers no request.
    Unsolicited {
        /// The program.
        worker: WorkerId,
        /// The message.
        frame: Slice,
    },
    /// A program that serves one connection only exited with code 0.
    Finished {
        /// The program.
        worker: WorkerId,
    },
    /// A shared program sent a message to all of its clients.
    Announced {
        /// The message.
        frame: Slice,
    },
    /// A reply was discarded, because no request is waiting for it.
    Discarded,
    /// A slot of a worker is free.
    Released {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker has started successfully, even if it exits now.
    Proven {
        /// The worker.
        worker: WorkerId,
        /// What shows that it started.
        proof: Proof,
    },
    /// The slots of a program are reserved, because its replies may be out of step with its requests.
    Kept {
        /// The program.
        worker: WorkerId,
        /// The only client that may use the slots; `None`: no client may.
        client: Option<u64>,
    },
    /// The slots of a program are no longer reserved.
    Open {
        /// The program.
        worker: WorkerId,
    },
    /// Replies of a program may belong to other requests than those that they were sent to.
    Suspect {
        /// The number of such replies.
        count: u64,
        /// The latest of the affected requests, by the ids that their clients have.
        requests: Vec<u64>,
    },
    /// A program sent output after the reply to its reset and before it was given to another connection.
    SpokeAfterReset,
    /// A request was not delivered to its worker and goes back to the queue.
    Returned {
        /// The request.
        id: RequestId,
        /// Its content.
        payload: Payload,
    },
    /// A request may be sent to another worker.
    Retry {
        /// The request.
        id: RequestId,
        /// Its content.
        payload: Payload,
        /// Its properties, with the number of attempts.
        meta: RequestMeta,
        /// The worker that failed the request, and the cause.
        failed: Option<(WorkerId, Cause)>,
    },
    /// A worker is ready for requests.
    Started {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker could not be started.
    StartFailed {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker accepts no more requests and is about to end.
    Retired {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker has ended.
    Ended {
        /// The worker.
        worker: WorkerId,
        /// Whether the end was requested or normal. An unexpected one counts as a failure.
        expected: bool,
        /// Whether the worker was reachable at any time since its start.
        reached: bool,
    },
    /// The result of a health check.
    Checked {
        /// The worker that was checked.
        worker: WorkerId,
        /// Whether the check succeeded.
        good: bool,
        /// The result in words, for operators.
        text: String,
    },
    /// The reason that the pool may have no worker. It applies until a worker has started.
    Trouble {
        /// The reason.
        trouble: Box<Trouble>,
    },
    /// All shards together need more connections to a worker than it has slots.
    Short {
        /// The worker.
        worker: WorkerId,
    },
    /// A request could not be delivered to a worker.
    Unreached {
        /// The worker.
        worker: WorkerId,
    },
    /// The current memory use of a worker.
    Memory {
        /// The worker.
        worker: WorkerId,
        /// Resident memory of its process.
        bytes: u64,
    },
    /// Output of a program on stderr was dropped, because its log rate is limited.
    StderrDropped,
    /// A message of a client was dropped, because the id in it may belong to another client.
    Stray,
}
