//! The order of turns, as far as a naive model can determine it: of the requests that wait for the same worker, the
//! urgent one and then the oldest one goes first. Where groups share, no group has two turns while another waits for
//! its first.

use std::collections::BTreeMap;

use crate::job::Waiting;
use crate::random::Random;
use pool::PRIORITIES;

/// The lane of a request: for this worker, or for any.
type Lane = Option<String>;

/// A lane, a priority and a group.
type Flow = (Lane, u8, Option<u64>);

/// The recorded turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// The number of groups; 0: requests have no group.
    shares: u64,
    /// The number of priorities of the requests.
    priorities: u8,
    /// When a request of a flow was last given to a worker. That was a turn of the flow.
    given: BTreeMap<Flow, u64>,
    /// When a request last left a flow. That may have been a turn; the abandonment of a request behind others of its
    /// flow is none.
    left: BTreeMap<Flow, u64>,
}

impl Turns {
    pub(crate) fn new(random: &mut Random) -> Self {
        let (shares, priorities) = [(0, PRIORITIES), (3, PRIORITIES), (3, 1)][random.pick(3)];
        Self { shares, priorities, given: BTreeMap::new(), left: BTreeMap::new() }
    }

    /// Returns the priority and the group of a request.
    pub(crate) fn traits(&self, random: &mut Random, has_client: bool) -> (u8, Option<u64>) {
        let priority = random.byte(self.priorities);
        let share = (self.shares > 0).then(|| random.below(self.shares));
        (priority, share.map(|share| share + if has_client { 0 } else { 100 }))
    }

    /// A request leaves its lane.
    pub(crate) fn note(&mut self, taken: &Waiting, step: u64) {
        self.left.insert(flow(taken, &taken.bound), step);
    }

    /// A request leaves its lane for this worker.
    pub(crate) fn note_given(&mut self, taken: &Waiting, name: &str, step: u64) {
        self.given.insert(flow(taken, &taken.bound), step);
        // The request may have been bound since it arrived. Then it was the turn of the lane of that worker.
        self.left.insert(flow(taken, &Some(name.to_owned())), step);
        self.note(taken, step);
    }

    /// A request is given to the worker of this name. If `is_open`, the worker also serves clients that are not bound
    /// to it.
    pub(crate) fn check(&self, taken: &Waiting, waiting: &[Waiting], name: &str, is_open: bool) {
        let Some(lane) = known_lane(taken, name) else { return };
        for other in waiting {
            // It is not known whether the other requests were bound in the meantime.
            let Some(theirs) = known_lane(other, name).filter(|theirs| theirs.is_some() || is_open)
            else {
                continue;
            };
            let earlier = other.since < taken.since;
            if self.shares == 0 {
                let sooner = other.job.priority <= taken.job.priority && earlier;
                assert!(!sooner, "{taken:?} goes to {name} before {other:?}");
                continue;
            }
            let same_level = other.job.priority == taken.job.priority;
            let same_flow = same_level && lane == theirs && other.job.share == taken.job.share;
            assert!(!(same_flow && earlier), "{taken:?} goes to {name} before {other:?}");
            if same_level && !same_flow && (lane == theirs || self.priorities == 1) {
                let Some(last) = self.given.get(&flow(taken, &lane)) else { continue };
                let had = self.left.get(&flow(other, &theirs));
                let twice = other.came < *last && had.is_none_or(|had| had < last);
                assert!(!twice, "{taken:?} has a second turn at {name} before {other:?}");
            }
        }
    }
}

fn flow(of: &Waiting, lane: &Lane) -> Flow {
    (lane.clone(), of.job.priority, of.job.share)
}

/// Returns the lane of a request that waits for the worker of this name, if it is known: a request with a client may
/// have been bound to another worker since it arrived.
fn known_lane(waiting: &Waiting, name: &str) -> Option<Lane> {
    match &waiting.bound {
        Some(bound) => (bound == name && !waiting.was_let_go).then(|| Some(bound.clone())),
        None => waiting.job.client.is_none().then_some(None),
    }
}
