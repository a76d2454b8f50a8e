//! Pending commands of the engine to workers.

use std::collections::VecDeque;

use exchange::{PoolId, RequestId, WorkerId, WorkerIndex};

use super::QueuedRequest;
use flow::backend_effect::BackendEffect;
use flow::payload::Payload;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;

/// The next step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Decisions of the pools.
    Pools,
    /// Requests to a connection's own program, with the number left in this round.
    Pinned(usize),
    /// Workers to replace, with the number left in this round.
    Replaced(usize),
    Throttled,
    Surplus,
    /// Control messages for requests in flight, with the number left in this round.
    Controls(usize),
    /// Requests that were not delivered to their worker.
    Returned,
}

/// Pending commands to workers, each kind in its order. A round processes one kind after the other ([`Step`]). Commands
/// that are added meanwhile belong to the next round.
pub(super) struct Effects {
    /// Commands that are carried out before any round.
    pub(super) urgent: VecDeque<(PoolId, BackendEffect)>,
    /// Requests that were not delivered to their worker, the oldest of each pool first. They are queued again after all
    /// earlier decisions of the pools are carried out, so that their order is kept.
    pub(super) returned: Vec<(PoolId, RequestId, Payload, RequestMeta)>,
    /// Control messages for requests in flight.
    pub(super) controls: VecDeque<(PoolId, WorkerId, RequestId, RequestControl)>,
    /// Requests to a connection's own program, which are not queued.
    pub(super) pinned: VecDeque<(PoolId, WorkerId, QueuedRequest)>,
    /// Programs to replace after their connection has ended, and workers that are down.
    pub(super) to_replace: VecDeque<(PoolId, WorkerId)>,
    /// Programs whose output is paused (`true`) or resumed.
    pub(super) throttles: VecDeque<(PoolId, WorkerId, bool)>,
    /// Workers to which an idle connection is closed, so that another shard can open one.
    pub(super) surplus: VecDeque<(PoolId, WorkerIndex)>,
    pub(super) step: Step,
    /// The current pool of the round.
    pub(super) pool: Option<PoolId>,
    /// The index from which to look for the next pool.
    pub(super) next_pool: usize,
    /// This round has produced no command so far.
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
    /// All pools are done in this round.
    #[inline]
    pub(super) fn end_of_pools(&mut self) {
        self.next_pool = 0;
        let Self { controls, pinned, to_replace, throttles, surplus, .. } = &*self;
        let left = controls.len() + pinned.len() + to_replace.len() + throttles.len();
        // True in nearly every round.
        let is_empty = left + surplus.len() == 0;
        self.step = if is_empty { Step::Returned } else { Step::Pinned(pinned.len()) };
    }

    /// Starts the next round. Returns whether this one produced no command.
    #[inline]
    pub(super) fn begin_round(&mut self) -> bool {
        self.step = Step::Pools;
        std::mem::replace(&mut self.is_idle, true)
    }

    /// The next command that is neither a decision of a pool nor a request.
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
