//! Who must have got a request: weights, clients that are bound to servers, and a pool that answers for
//! one that is sorry.
//!
//! Weight 0 gets nothing in any world. The rest is held where nothing went wrong: there turns go by
//! weight as exactly as round robin promises, and a client has one server. Where another pool has a
//! server that is always there, nobody is told that the first is sorry.

use std::collections::{BTreeMap, BTreeSet};

use super::{Http, Role, message};
use crate::chance::Chance;

/// Visitors are known by one of so many names.
const NAMES: usize = 3;

/// What a world promises of its servers.
#[derive(Debug, Default)]
pub(super) struct Dues {
    /// What each gets compared with the others, by place.
    weights: Vec<u32>,
    schedule: &'static str,
    is_sticky: bool,
    /// The server of the pool that answers for one that is sorry; it is never but there.
    pub(super) spare: Option<usize>,
}

/// The schedules, and whether turns are exact.
const SCHEDULES: [(&str, bool); 7] = [
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
    pub(super) fn draw(chance: &mut Chance, servers: usize) -> Self {
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
    pub(super) fn weight(&self, place: usize) -> u32 {
        self.weights[place]
    }

    /// The options of the first pool.
    pub(super) fn options(&self) -> String {
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
    pub(super) fn line(&self, visitor: usize) -> String {
        match self.is_sticky {
            true => format!("X-Who: {}\r\n", visitor % NAMES),
            false => String::new(),
        }
    }
}

/// What went otherwise than it was due. `well`: nothing went wrong with any link.
pub(super) fn check(http: &Http, well: bool) -> Vec<String> {
    let (mut found, mut given) = (Vec::new(), BTreeMap::<usize, u64>::new());
    let mut servers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let dues = &http.dues;
    for (server, id) in requests(http) {
        *given.entry(server).or_default() += 1;
        if dues.weights.get(server) == Some(&0) {
            found.push(format!("request {id} was given to server {server}, of weight 0"));
        }
        if server < dues.weights.len() {
            servers.entry(name_of(id)).or_default().insert(server);
        }
    }
    if !well || http.may_be_out {
        return found;
    }
    for (name, servers) in servers.iter().filter(|(_, servers)| servers.len() > 1) {
        if dues.is_sticky {
            found.push(format!("visitors known by {name} were given to servers {servers:?}"));
        }
    }
    let is_exact = SCHEDULES.iter().any(|(word, exact)| *word == dues.schedule && *exact);
    if is_exact && !dues.is_sticky && http.is_alone && http.slots >= PLENTY {
        found.extend(uneven(dues, &given));
    }
    found
}

/// So many slots a server never has in use.
const PLENTY: usize = 1000;

/// Whether somebody has more than two turns too many, or too few.
fn uneven(dues: &Dues, given: &BTreeMap<usize, u64>) -> Option<String> {
    let of = |place: usize| given.get(&place).copied().unwrap_or_default();
    let all: u64 = (0..dues.weights.len()).map(of).sum();
    let weights = u64::from(dues.weights.iter().sum::<u32>());
    let off = |(place, weight): (usize, &u32)| {
        (of(place) * weights).abs_diff(all * u64::from(*weight)) > 2 * weights
    };
    let is_uneven = dues.weights.iter().enumerate().any(off);
    is_uneven.then(|| format!("weights {:?} were given {given:?}", dues.weights))
}

/// The requests of visitors that servers were given, by server.
fn requests(http: &Http) -> impl Iterator<Item = (usize, u64)> + '_ {
    http.speakers.iter().flat_map(|speaker| {
        let mut all = Vec::new();
        if let Role::Server(link) = &speaker.role {
            let mut rest = &link.given[..];
            while let Ok(Some(request)) = message::request(rest) {
                all.push((link.server, request.id));
                let Some((_, used)) = request.whole else { break };
                rest = &rest[used..];
            }
        }
        all.into_iter().filter(|(_, id)| *id >= FIRST_ID)
    })
}

/// The number of the first request of the first visitor, and how many each may have.
pub(super) const FIRST_ID: u64 = 1_000_000;
pub(super) const OF_ONE: u64 = 1000;

/// What the visitor of this request is known by.
fn name_of(id: u64) -> usize {
    usize::try_from((id - FIRST_ID) / OF_ONE).unwrap_or_default() % NAMES
}
