//! The workers of a pool, of either kind. This is the one place that knows that there are two.

use event::Calls;
use exchange::{Request, RequestId, WorkerId};

use crate::core::Word;
use crate::handlers::Handlers;
use crate::outside::Outside;
use crate::plan::WorkersPlan;
use crate::programs::Programs;
use crate::status::WorkerStatus;
use crate::upward::Upward;

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
        calls: &mut Calls<'_>,
        worker: WorkerId,
        place: usize,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match self {
            Self::Programs(programs) => programs.start(calls, worker, place, outside, up),
            Self::Handlers(handlers) => handlers.start(worker, place, outside, up),
        }
    }

    /// Ends a worker that has nothing to do.
    pub(crate) fn stop(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match self {
            Self::Programs(programs) => programs.stop(calls, worker, outside, up),
            Self::Handlers(handlers) => handlers.stop(worker, outside),
        }
    }

    /// Ends a worker that has nothing to do and is to serve nobody else.
    pub(crate) fn retire(&mut self, calls: &mut Calls<'_>, worker: WorkerId, up: &mut Vec<Upward>) {
        match self {
            Self::Programs(programs) => programs.retire(calls, worker, up),
            // Threads keep nothing of their clients.
            Self::Handlers(_) => {}
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
            Self::Programs(programs) => programs.dispatch(calls, worker, request, outside, up),
            Self::Handlers(handlers) => {
                handlers.dispatch(calls, worker, request, last, outside, up);
            }
        }
    }

    /// A worker is told something of a request that it has.
    pub(crate) fn tell(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        word: Word,
        up: &mut Vec<Upward>,
    ) {
        match self {
            Self::Programs(programs) => programs.tell(calls, worker, id, word, up),
            // A thread's parts wait in its outbox.
            Self::Handlers(_) => {}
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
