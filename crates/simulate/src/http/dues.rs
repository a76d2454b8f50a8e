//! Who must have got a request: weights, clients that are bound to servers, and a pool that answers for
//! one that is sorry.
//!
//! Weight 0 gets nothing in any world. The rest is held where nothing went wrong: there turns go by
//! weight as exactly as round robin promises, and a client has one server. Where another pool has a
//! server that is always there, nobody is told that the first is sorry.

use crate::chance::Chance;

/// Visitors are known by one of so many names.
pub(crate) const NAMES: usize = 3;

/// What a world promises of its servers.
#[derive(Debug, Default)]
pub(crate) struct Dues {
    /// What each gets compared with the others, by place.
    pub(crate) weights: Vec<u32>,
    pub(crate) schedule: &'static str,
    pub(crate) is_sticky: bool,
    /// The server of the pool that answers for one that is sorry; it is never but there.
    pub(crate) spare: Option<usize>,
}

/// The schedules, and whether turns are exact.
pub(crate) const SCHEDULES: [(&str, bool); 7] = [
    ("round-robin", true),
    ("weighted-round-robin", true),
    ("least-outstanding", false),
    ("two-choices", false),
    ("random", false),
    ("first", false),
    ("hash", false),
];

impl Dues {
    /// For so many servers, of which the first is always to serve.
    pub(crate) fn draw(chance: &mut Chance, servers: usize) -> Self {
        let weighs = chance.in_1000(400);
        let weight = |place: usize| match (weighs, place) {
            (false, _) => 1,
            (true, 0) => chance.pick(&[1, 2, 3]),
            (true, _) => chance.pick(&[0, 1, 2, 3]),
        };
        let weights = (0..servers).map(weight).collect();
        Self {
            weights,
            schedule: chance.pick(&SCHEDULES).0,
            is_sticky: chance.in_1000(300),
            spare: None,
        }
    }

    /// The weight of a server of the first pool.
    pub(crate) fn weight(&self, place: usize) -> u32 {
        self.weights[place]
    }

    /// The options of the first pool.
    pub(crate) fn options(&self) -> String {
        let mut text = format!("schedule = \"{}\"\n", self.schedule);
        if self.schedule == "hash" {
            text += "hash = \"path\"\n";
        }
        if self.is_sticky {
            text += "sticky = { key = \"header:x-who\" }\n";
        }
        text
    }

    /// A line of the head by which a visitor is known, if it is by any.
    pub(crate) fn line(&self, visitor: usize) -> String {
        match self.is_sticky {
            true => format!("X-Who: {}\r\n", visitor % NAMES),
            false => String::new(),
        }
    }
}

/// The number of the first request of the first visitor, and how many each may have.
pub(crate) const FIRST_ID: u64 = 1_000_000;

pub(crate) const OF_ONE: u64 = 1000;

/// What the visitor of this request is known by.
pub(crate) fn name_of(id: u64) -> usize {
    usize::try_from((id - FIRST_ID) / OF_ONE).unwrap_or_default() % NAMES
}
