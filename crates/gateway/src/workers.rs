//! The workers of a pool, of either kind. This is the one place that knows that there are two.

use event::{Calls, Mailbox};
use exchange::{Outcome, Request, RequestId, Slice, WorkerId};
use spawn::Spawn;

use crate::handlers::{Handlers, Runner};
use crate::mail::Mail;
use crate::plan::WorkersPlan;
use crate::programs::Programs;
use crate::status::WorkerStatus;

/// What workers need from outside the shard.
pub(crate) struct Outside {
    pub(crate) spawner: Box<dyn Spawn>,
    pub(crate) runner: Box<dyn Runner>,
    pub(crate) mailbox: Mailbox<Mail>,
    /// Which worker a report of the spawner is about.
    pub(crate) tokens: std::collections::BTreeMap<u64, (usize, WorkerId)>,
    pub(crate) token_next: u64,
}

impl Outside {
    /// A token by which the spawner's reports find this worker.
    pub(crate) fn token(&mut self, pool: usize, worker: WorkerId) -> u64 {
        let token = self.token_next;
        self.token_next += 1;
        self.tokens.insert(token, (pool, worker));
        token
    }
}

/// What workers report to their pool and to the exchanges.
#[derive(Debug)]
pub(crate) enum Upward {
    Answered {
        id: RequestId,
        outcome: Outcome,
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
    StderrDropped,
}

/// The workers of one pool.
pub(crate) enum Workers {
    Programs(Programs),
    Handlers(Handlers),
}

impl Workers {
    pub(crate) fn new(pool: &str, plan: WorkersPlan) -> Self {
        match plan {
            WorkersPlan::Programs(plan) => Self::Programs(Programs::new(pool, plan)),
            WorkersPlan::Handlers { factory, deadline } => {
                Self::Handlers(Handlers::new(pool, factory, deadline))
            }
        }
    }

    pub(crate) fn start(
        &mut self,
        worker: WorkerId,
        place: usize,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match self {
            Self::Programs(programs) => programs.start(worker, place, outside),
            Self::Handlers(handlers) => handlers.start(worker, place, outside, up),
        }
    }

    /// Ends a worker that has nothing to do.
    pub(crate) fn stop(&mut self, calls: &mut Calls<'_>, worker: WorkerId, outside: &mut Outside) {
        match self {
            Self::Programs(programs) => programs.stop(calls, worker, outside),
            Self::Handlers(handlers) => handlers.stop(worker, outside),
        }
    }

    pub(crate) fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        request: Request,
        last: bool,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match self {
            Self::Programs(programs) => programs.dispatch(calls, worker, request, up),
            Self::Handlers(handlers) => {
                handlers.dispatch(calls, worker, request, last, outside, up);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Programs(programs) => programs.is_empty(),
            Self::Handlers(handlers) => handlers.is_empty(),
        }
    }

    pub(crate) fn status(&self) -> Vec<WorkerStatus> {
        match self {
            Self::Programs(programs) => programs.status(),
            Self::Handlers(handlers) => handlers.status(),
        }
    }
}
