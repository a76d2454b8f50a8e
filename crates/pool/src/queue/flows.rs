//! The common lane: levels of urgency, and in each the flows of those who share.

use std::time::{Duration, Instant};

use hashbrown::HashTable;

use crate::ask::PRIORITIES;
use crate::list::{Links, List};
use crate::random::mix;

/// Requests of one level that share; they go in their order.
#[derive(Clone, Copy, Debug)]
struct Flow {
    list: List,
    level: u8,
    share: Option<u64>,
}

/// Flows of one level in the order of their turns.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    ring: List,
    /// The flow of those who share with nobody, if one of them waits.
    plain: Option<u32>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Flows {
    /// What a level is worth in waiting time.
    step: Duration,
    levels: [Level; PRIORITIES as usize],
    /// Levels in which somebody waits, a bit each.
    used: u16,
    each: Vec<Flow>,
    vacant: Vec<u32>,
    /// Flows that share, by level and share.
    shared: HashTable<u32>,
    rings: Links,
    length: u32,
}

impl Flows {
    pub(super) fn new(step: Duration) -> Self {
        Self {
            step,
            levels: [Level::default(); PRIORITIES as usize],
            used: 0,
            each: Vec::new(),
            vacant: Vec::new(),
            shared: HashTable::new(),
            rings: Links::default(),
            length: 0,
        }
    }

    pub(super) const fn handle_step(&mut self, step: Duration) {
        self.step = step;
    }

    pub(super) const fn length(&self) -> u32 {
        self.length
    }

    /// Whose turn it is; `since` says how long a request has waited.
    #[inline]
    pub(super) fn first(&self, since: impl Fn(u32) -> Instant) -> Option<u32> {
        let mut used = self.used;
        if used.is_power_of_two() {
            // Most often: all are as urgent, and time changes nothing between them.
            return Some(self.head(used.trailing_zeros()));
        }
        let mut best: Option<(Option<Instant>, u32)> = None;
        while used != 0 {
            let number = used.trailing_zeros();
            used &= used - 1;
            let head = self.head(number);
            // An instant beyond the end of time comes last.
            let due = since(head).checked_add(self.step.saturating_mul(number));
            let sooner = match (&best, due) {
                (None, _) | (Some((None, _)), Some(_)) => true,
                (Some((Some(best), _)), Some(due)) => due < *best,
                _ => false,
            };
            if sooner {
                best = Some((due, head));
            }
        }
        best.map(|(_, head)| head)
    }

    /// Whose turn it is in a level in which somebody waits.
    #[inline]
    fn head(&self, level: u32) -> u32 {
        let flow = self.levels[level as usize].ring.first();
        let flow = flow.expect("a level in use has a flow");
        self.each[flow as usize].list.first().expect("a flow in a ring is not empty")
    }

    /// Puts a request in; gives its flow.
    pub(super) fn enter(
        &mut self,
        turns: &mut Links,
        place: u32,
        level: u8,
        share: Option<u64>,
        first: bool,
    ) -> u32 {
        let flow = self.flow(level, share);
        self.length += 1;
        self.used |= 1 << level;
        let ring = &mut self.levels[usize::from(level)].ring;
        let list = &mut self.each[flow as usize].list;
        if list.is_empty() {
            self.rings.cover(flow);
            if first {
                ring.push_first(&mut self.rings, flow);
            } else {
                ring.push_last(&mut self.rings, flow);
            }
        } else if first {
            ring.remove(&mut self.rings, flow);
            ring.push_first(&mut self.rings, flow);
        }
        if first {
            list.push_first(turns, place);
        } else {
            list.push_last(turns, place);
        }
        flow
    }

    /// Takes a request out of its flow. One that was at the head has had its flow's turn.
    pub(super) fn leave(&mut self, turns: &mut Links, place: u32, flow: u32) {
        let Flow { list, level, share } = &mut self.each[flow as usize];
        let turn = list.first() == Some(place);
        list.remove(turns, place);
        self.length -= 1;
        let Level { ring, plain } = &mut self.levels[usize::from(*level)];
        if list.is_empty() {
            ring.remove(&mut self.rings, flow);
            if ring.is_empty() {
                self.used &= !(1 << *level);
            }
            match *share {
                None => *plain = None,
                Some(share) => {
                    let hash = hash(*level, share);
                    if let Ok(entry) = self.shared.find_entry(hash, |other| *other == flow) {
                        entry.remove();
                    }
                }
            }
            self.vacant.push(flow);
        } else if turn && ring.length() > 1 && ring.first() == Some(flow) {
            ring.remove(&mut self.rings, flow);
            ring.push_last(&mut self.rings, flow);
        }
    }

    /// The flow of a level and a share; a new one when nobody of it waits.
    fn flow(&mut self, level: u8, share: Option<u64>) -> u32 {
        let found = match share {
            Some(share) => {
                let same = |flow: &u32| {
                    let flow = &self.each[*flow as usize];
                    flow.level == level && flow.share == Some(share)
                };
                self.shared.find(hash(level, share), same).copied()
            }
            None => self.levels[usize::from(level)].plain,
        };
        if let Some(flow) = found {
            return flow;
        }
        let new = Flow { list: List::EMPTY, level, share };
        let flow = match self.vacant.pop() {
            Some(flow) => {
                self.each[flow as usize] = new;
                flow
            }
            None => {
                self.each.push(new);
                u32::try_from(self.each.len() - 1).expect("no more flows than requests")
            }
        };
        match share {
            None => self.levels[usize::from(level)].plain = Some(flow),
            Some(share) => {
                let flows = &self.each;
                self.shared.insert_unique(hash(level, share), flow, |flow| {
                    let flow = &flows[*flow as usize];
                    hash(flow.level, flow.share.unwrap_or(0))
                });
            }
        }
        flow
    }

    pub(super) fn check(&self, turns: &Links) {
        let mut length = 0;
        let mut flows = 0;
        for (number, level) in (0..).zip(&self.levels) {
            assert_eq!(self.used & 1 << number != 0, !level.ring.is_empty(), "levels in use");
            for flow in level.ring.iter(&self.rings) {
                let flow = &self.each[flow as usize];
                assert!(!flow.list.is_empty() && flow.level == number, "a flow is in its level");
                length += flow.list.iter(turns).count();
                flows += 1;
            }
        }
        assert_eq!(length, self.length as usize, "the lane is as long as it says");
        assert_eq!(flows + self.vacant.len(), self.each.len(), "every flow is in use or vacant");
    }
}

fn hash(level: u8, share: u64) -> u64 {
    mix(share ^ (u64::from(level) << 56))
}
