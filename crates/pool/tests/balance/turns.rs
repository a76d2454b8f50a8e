//! Whose turn it is, as far as a naive view knows: of those who wait for the same worker the urgent
//! and then the oldest; and where they share, nobody has two turns while another waits for its first.

use std::collections::BTreeMap;

use crate::job::Waiting;
use crate::random::Random;
use pool::PRIORITIES;

/// Where it waits: for this worker, or for any.
type Lane = Option<String>;

/// A lane, a priority and a share.
type Flow = (Lane, u8, Option<u64>);

/// What is known of turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Requests share, by one of so many; 0: none does.
    shares: u64,
    /// How many priorities they have.
    priorities: u8,
    /// When a request of a flow was given to a worker last, which was its turn.
    given: BTreeMap<Flow, u64>,
    /// When one left it last, which may have been its turn: one that is abandoned behind others of its
    /// flow is none.
    left: BTreeMap<Flow, u64>,
}

impl Turns {
    pub(crate) fn new(random: &mut Random) -> Self {
        let (shares, priorities) = [(0, PRIORITIES), (3, PRIORITIES), (3, 1)][random.pick(3)];
        Self { shares, priorities, given: BTreeMap::new(), left: BTreeMap::new() }
    }

    /// The priority and the share of a request.
    pub(crate) fn traits(&self, random: &mut Random, has_client: bool) -> (u8, Option<u64>) {
        let priority = random.byte(self.priorities);
        let share = (self.shares > 0).then(|| random.below(self.shares));
        (priority, share.map(|share| share + if has_client { 0 } else { 100 }))
    }

    /// One leaves its lane.
    pub(crate) fn note(&mut self, taken: &Waiting, step: u64) {
        self.left.insert(flow(taken, &taken.bound), step);
    }

    /// It does so for this worker.
    pub(crate) fn note_given(&mut self, taken: &Waiting, name: &str, step: u64) {
        self.given.insert(flow(taken, &taken.bound), step);
        // It may have been bound since it came: then it was the turn of those who wait for that worker.
        self.left.insert(flow(taken, &Some(name.to_owned())), step);
        self.note(taken, step);
    }

    /// One is given to the worker of this name, which may be given those of nobody if `is_open`.
    pub(crate) fn check(&self, taken: &Waiting, waiting: &[Waiting], name: &str, is_open: bool) {
        let Some(lane) = known_lane(taken, name) else { return };
        for other in waiting {
            // Not known of the others: whether they were bound meanwhile.
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

/// The lane of a request that waits for the worker of this name, as far as that is known: who has a
/// client may be bound to another since it came.
fn known_lane(waiting: &Waiting, name: &str) -> Option<Lane> {
    match &waiting.bound {
        Some(bound) => (bound == name && !waiting.was_let_go).then(|| Some(bound.clone())),
        None => waiting.job.client.is_none().then_some(None),
    }
}
