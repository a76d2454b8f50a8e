//! Reports of workers to their shard, from other threads or from a later iteration of the loop.

use std::sync::Arc;

use exchange::{Batch, Outcome, PoolId, Response, Slice, WorkerId};

/// A report of a handler thread.
#[derive(Debug)]
pub enum HandlerReport {
    /// The handler is open and accepts batches.
    Started,
    /// The handler could not be opened, for this reason. The thread has ended.
    OpenFailed(Arc<str>),
    /// A part of the reply to the only request of the batch.
    Part(Slice),
    /// Outcomes before the end of the batch, by their index in it.
    Answers(Vec<(usize, Outcome)>),
    /// HTTP responses, by their index in the batch.
    Responses(Vec<(usize, Response)>),
    /// The batch is done. Requests without an outcome remain unanswered.
    Served {
        /// The last outcomes, by their index in the batch.
        answers: Vec<(usize, Outcome)>,
        /// The batch, returned because its memory came from the shard's thread.
        batch: Batch,
    },
    /// The thread has ended.
    Ended {
        /// Whether the handler panicked.
        panicked: bool,
    },
}

/// One report of a worker.
#[derive(Debug)]
pub enum WorkerReport {
    /// A handler thread.
    Handler {
        /// The pool of the worker.
        pool: PoolId,
        /// The worker.
        worker: WorkerId,
        /// The report.
        report: HandlerReport,
    },
    /// A worker answered a health check.
    Checked {
        /// The pool of the worker.
        pool: PoolId,
        /// The number of the check.
        number: u64,
        /// The outcome of the check request.
        outcome: Outcome,
    },
}

/// Delivers a report to the shard. It is called on any thread and must not block.
pub type Reports = Arc<dyn Fn(WorkerReport) + Send + Sync>;
