//! A lane: levels of urgency, each with flows for the groups that share.

use std::time::{Duration, Instant};

use hashbrown::HashTable;

use crate::list::{Links, List};
use crate::random::mix;
use crate::request_traits::PRIORITIES;

/// The requests of one level that belong to one group. They are served in their order.
#[derive(Clone, Copy, Debug)]
struct Flow {
    list: List,
    level: u8,
    share: Option<u64>,
    /// When the flow last had its turn, or was added: see [`Turns`].
    stamp: i64,
}

/// The state that all lanes of a queue have in common: the links of their requests, and the order of turns. A flow that
/// has had its turn is stamped behind all others of all lanes. So two lanes that need the same worker take turns as if
/// they were one. The flows of a ring are in the order of their stamps.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) links: Links,
    first: i64,
    last: i64,
}

impl Turns {
    const fn stamp(&mut self, first: bool) -> i64 {
        if first {
            self.first -= 1;
            self.first
        } else {
            self.last += 1;
            self.last
        }
    }
}

/// The request that a lane offers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) level: u8,
    /// Whether the request belongs to no group.
    pub(super) plain: bool,
    pub(super) stamp: i64,
}

/// The flows of one level, in the order of their turns.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    ring: List,
    /// The flow of requests without a group, if one of them waits.
    plain: Option<u32>,
}

/// All flows of a lane.
#[derive(Debug, Default)]
pub(super) struct Flows {
    levels: [Level; PRIORITIES as usize],
    /// Levels with a waiting request, one bit each.
    used: u16,
    each: Vec<Flow>,
    vacant: Vec<u32>,
    /// The flows of groups, by level and group.
    shared: HashTable<u32>,
    rings: Links,
    length: u32,
}

impl Flows {
    pub(super) const fn length(&self) -> u32 {
        self.length
    }

    /// Returns the request whose turn it is. `since` returns since when a request has waited. A level is worth one
    /// `step` of waiting.
    #[inline]
    pub(super) fn first(&self, step: Duration, since: impl Fn(u32) -> Instant) -> Option<u32> {
        let mut used = self.used;
        if used.is_power_of_two() {
            // The most frequent case: all requests are equally urgent, and time does not change their order.
            return Some(self.head(used.trailing_zeros()));
        }
        let mut best: Option<(Option<Instant>, u32)> = None;
        while used != 0 {
            let number = used.trailing_zeros();
            used &= used - 1;
            let head = self.head(number);
            // A time that cannot be represented comes last.
            let due = since(head).checked_add(step.saturating_mul(number));
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

    /// Returns the request whose turn it is in a level with a waiting request.
    #[inline]
    fn head(&self, level: u32) -> u32 {
        let flow = self.levels[level as usize].ring.first();
        let flow = flow.expect("a level in use has a flow");
        self.each[flow as usize].list.first().expect("a flow in a ring is not empty")
    }

    /// Returns the turn of a flow. One of its requests is [`first`](Self::first).
    pub(super) fn turn(&self, flow: u32) -> Turn {
        let &Flow { level, share, stamp, .. } = &self.each[flow as usize];
        Turn { level, plain: share.is_none(), stamp }
    }

    /// Adds a request. Returns its flow.
    pub(super) fn enter(
        &mut self,
        turns: &mut Turns,
        place: u32,
        level: u8,
        share: Option<u64>,
        first: bool,
    ) -> u32 {
        let flow = self.flow(level, share);
        self.length += 1;
        self.used |= 1 << level;
        let ring = &mut self.levels[usize::from(level)].ring;
        let Flow { list, stamp, .. } = &mut self.each[flow as usize];
        if list.is_empty() {
            self.rings.cover(flow);
            ring.push(&mut self.rings, flow, first);
            *stamp = turns.stamp(first);
        } else if first {
            ring.remove(&mut self.rings, flow);
            ring.push_first(&mut self.rings, flow);
            *stamp = turns.stamp(true);
        }
        list.push(&mut turns.links, place, first);
        flow
    }

    /// Removes a request from its flow. If it was at the head, the flow has had its turn.
    pub(super) fn leave(&mut self, turns: &mut Turns, place: u32, flow: u32) {
        let Flow { list, level, share, stamp } = &mut self.each[flow as usize];
        let turn = list.first() == Some(place);
        list.remove(&mut turns.links, place);
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
        } else if turn && ring.first() == Some(flow) {
            *stamp = turns.stamp(false);
            if ring.length() > 1 {
                ring.remove(&mut self.rings, flow);
                ring.push_last(&mut self.rings, flow);
            }
        }
    }

    /// Returns the flow of a level and a group. A new flow is created if no request of it waits.
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
        let new = Flow { list: List::EMPTY, level, share, stamp: 0 };
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

    /// Returns all requests of the lane, in no particular order.
    pub(super) fn all<'a>(&'a self, turns: &'a Turns) -> impl Iterator<Item = u32> + 'a {
        let rings = self.levels.iter().flat_map(|level| level.ring.iter(&self.rings));
        rings.flat_map(|flow| self.each[flow as usize].list.iter(&turns.links))
    }

    pub(super) fn check(&self, turns: &Turns) {
        let mut length = 0;
        let mut flows = 0;
        for (number, level) in (0..).zip(&self.levels) {
            assert_eq!(self.used & 1 << number != 0, !level.ring.is_empty(), "levels in use");
            let mut before = i64::MIN;
            for flow in level.ring.iter(&self.rings) {
                let flow = &self.each[flow as usize];
                assert!(!flow.list.is_empty() && flow.level == number, "a flow is in its level");
                assert!(flow.stamp > before, "a ring is in the order of its stamps");
                before = flow.stamp;
                length += flow.list.iter(&turns.links).count();
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
