//! What workers report to their shard from other threads, or from a later turn.

use std::sync::Arc;

use exchange::{Batch, Outcome, PoolId, Slice, WorkerId};

/// What a handler's thread reports.
#[derive(Debug)]
pub enum HandlerReport {
    /// It is open and takes batches.
    Started,
    /// It could not be opened; the thread has ended.
    OpenFailed(Arc<str>),
    /// A part of the reply to the one request of its batch.
    Part(Slice),
    /// Answers before the batch is done, by their place in it.
    Answers(Vec<(usize, Outcome)>),
    /// The batch is done. What it left unanswered will not be answered.
    Served {
        /// Its last answers, by their place in it.
        answers: Vec<(usize, Outcome)>,
        /// The batch itself, whose memory came from the shard's thread.
        batch: Batch,
    },
    /// The thread has ended; `panicked` when the handler did.
    Ended {
        /// Whether a panic ended it.
        panicked: bool,
    },
}

/// One report.
#[derive(Debug)]
pub enum WorkerReport {
    /// From a handler's thread.
    Handler {
        /// Its pool.
        pool: PoolId,
        /// Which of its workers.
        worker: WorkerId,
        /// What happened.
        report: HandlerReport,
    },
    /// A worker answered what it was asked to see whether it is fit.
    Checked {
        /// Its pool.
        pool: PoolId,
        /// The number of the question.
        number: u64,
        /// The answer.
        outcome: Outcome,
    },
}

/// Brings a report to the shard. Called on any thread; must not block.
pub type Reports = Arc<dyn Fn(WorkerReport) + Send + Sync>;
