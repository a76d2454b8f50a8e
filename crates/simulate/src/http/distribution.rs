//! The expected distribution of requests: weights, sessions that are bound to servers, and the fallback pool.
//!
//! A server of weight 0 gets no requests in any world. The other rules are checked only if nothing failed: then
//! requests are distributed by weight as exactly as round robin guarantees, and a session has one server. If the
//! fallback pool has a server that is always up, no client receives the fallback response.

use crate::chance::Chance;

/// The number of session keys of visitors.
pub(crate) const NAMES: usize = 3;

/// The distribution that a world requires of its servers.
#[derive(Debug, Default)]
pub(crate) struct Distribution {
    /// The weight of each server, by index.
    pub(crate) weights: Vec<u32>,
    pub(crate) schedule: &'static str,
    pub(crate) is_sticky: bool,
    /// The server of the fallback pool, if it is always up.
    pub(crate) spare: Option<usize>,
}

/// The values of `schedule`, and whether their distribution is exact.
pub(crate) const SCHEDULES: [(&str, bool); 7] = [
    ("round-robin", true),
    ("round-robin", true),
    ("least-requests", false),
    ("power-of-two", false),
    ("random", false),
    ("first", false),
    ("hash", false),
];

impl Distribution {
    /// Draws the options for this number of servers. The first one never has weight 0.
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

    /// Returns the weight of a server of the first pool.
    pub(crate) fn weight(&self, place: usize) -> u32 {
        self.weights[place]
    }

    /// Returns the options of the first pool.
    pub(crate) fn options(&self) -> String {
        let mut text = format!("balance = \"{}\"\n", self.schedule);
        if self.schedule == "hash" {
            text += "hash = \"path\"\n";
        }
        if self.is_sticky {
            text += "sticky = { key = \"header:x-who\" }\n";
        }
        text
    }

    /// Returns the header line with the session key of a visitor, if sessions are sticky.
    pub(crate) fn line(&self, visitor: usize) -> String {
        match self.is_sticky {
            true => format!("X-Who: {}\r\n", visitor % NAMES),
            false => String::new(),
        }
    }
}

/// The id of the first request of the first visitor, and the maximum number of requests of a visitor.
pub(crate) const FIRST_ID: u64 = 1_000_000;

pub(crate) const OF_ONE: u64 = 1000;

/// Returns the session key of the visitor that sent this request.
pub(crate) fn name_of(id: u64) -> usize {
    usize::try_from((id - FIRST_ID) / OF_ONE).unwrap_or_default() % NAMES
}
