//! What the engine wants of workers and has not handed out yet.

use std::collections::VecDeque;

use exchange::{PoolId, RequestId, WorkerId, WorkerIndex};

use super::QueuedRequest;
use flow::backend_effect::BackendEffect;
use flow::payload::Payload;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;

/// What is next in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// What the pools have decided.
    Pools,
    /// Requests that go straight to a connection's own program: so many.
    Pinned(usize),
    /// Workers that are replaced: so many.
    Replaced(usize),
    Throttled,
    Surplus,
    /// What workers are told of requests in their hands: so many times.
    Controls(usize),
    /// Requests that never reached their worker.
    Returned,
}

/// What the engine wants of workers, each kind in the order in which it came. In a round each kind has its turn
/// ([`Step`]), and those that come meanwhile have theirs in the next one.
pub(super) struct Effects {
    /// Those that wait for no round.
    pub(super) urgent: VecDeque<(PoolId, BackendEffect)>,
    /// Requests that never reached their worker, by pool, the oldest first. They go back when all
    /// that the pools had decided before is carried out, so that they keep their order.
    pub(super) returned: Vec<(PoolId, RequestId, Payload, RequestMeta)>,
    /// What workers are to be told of requests in their hands: pool, worker, request.
    pub(super) controls: VecDeque<(PoolId, WorkerId, RequestId, RequestControl)>,
    /// Requests that go straight to a connection's own program.
    pub(super) pinned: VecDeque<(PoolId, WorkerId, QueuedRequest)>,
    /// Programs that are replaced after their connection, and workers that are down.
    pub(super) to_replace: VecDeque<(PoolId, WorkerId)>,
    /// Programs whose connection takes nothing of what they say, or takes it again.
    pub(super) throttles: VecDeque<(PoolId, WorkerId, bool)>,
    /// Idle connections that are to go for those of other shards: pool and worker.
    pub(super) surplus: VecDeque<(PoolId, WorkerIndex)>,
    pub(super) step: Step,
    /// The pool whose turn it is.
    pub(super) pool: Option<PoolId>,
    /// Where to look for the pool behind it.
    pub(super) next_pool: usize,
    /// Nothing was wanted in this round so far.
    pub(super) is_idle: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            urgent: VecDeque::new(),
            returned: Vec::new(),
            controls: VecDeque::new(),
            pinned: VecDeque::new(),
            to_replace: VecDeque::new(),
            throttles: VecDeque::new(),
            surplus: VecDeque::new(),
            step: Step::Pools,
            pool: None,
            next_pool: 0,
            is_idle: true,
        }
    }
}

impl Effects {
    /// All pools had their turn in this round.
    #[inline]
    pub(super) fn end_of_pools(&mut self) {
        self.next_pool = 0;
        let Self { controls, pinned, to_replace, throttles, surplus, .. } = &*self;
        let left = controls.len() + pinned.len() + to_replace.len() + throttles.len();
        // In nearly every round.
        let is_empty = left + surplus.len() == 0;
        self.step = if is_empty { Step::Returned } else { Step::Pinned(pinned.len()) };
    }

    /// The next round begins. Says whether nothing was wanted in this one.
    #[inline]
    pub(super) fn begin_round(&mut self) -> bool {
        self.step = Step::Pools;
        std::mem::replace(&mut self.is_idle, true)
    }

    /// The next of those that are neither decided by a pool nor a request.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(PoolId, BackendEffect)> {
        loop {
            match self.step {
                Step::Pools | Step::Pinned(_) | Step::Returned => return None,
                Step::Replaced(left) => {
                    if let Some(left) = left.checked_sub(1)
                        && let Some((pool, worker)) = self.to_replace.pop_front()
                    {
                        self.step = Step::Replaced(left);
                        self.is_idle = false;
                        return Some((pool, BackendEffect::Retire { worker }));
                    }
                    self.step = Step::Throttled;
                }
                Step::Throttled => {
                    if let Some((pool, worker, paused)) = self.throttles.pop_front() {
                        return Some((pool, BackendEffect::Throttle { worker, paused }));
                    }
                    self.step = Step::Surplus;
                }
                Step::Surplus => {
                    if let Some((pool, worker)) = self.surplus.pop_front() {
                        return Some((pool, BackendEffect::ReleaseIdle { worker }));
                    }
                    self.step = Step::Controls(self.controls.len());
                }
                Step::Controls(left) => {
                    if let Some(left) = left.checked_sub(1)
                        && let Some((pool, worker, id, control)) = self.controls.pop_front()
                    {
                        self.step = Step::Controls(left);
                        self.is_idle = false;
                        return Some((pool, BackendEffect::Control { worker, id, control }));
                    }
                    self.step = Step::Returned;
                }
            }
        }
    }
}
