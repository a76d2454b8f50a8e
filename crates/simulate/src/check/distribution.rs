//! Checks the distribution of requests over servers.

use std::collections::{BTreeMap, BTreeSet};

use crate::http::distribution::{Distribution, FIRST_ID, SCHEDULES, name_of};
use crate::http::message;
use crate::http::speakers::{Http, Role};

/// Returns the deviations from the required distribution. `well`: no connection had a fault.
pub(super) fn check(http: &Http, well: bool) -> Vec<String> {
    let (mut found, mut given) = (Vec::new(), BTreeMap::<usize, u64>::new());
    let mut servers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let distribution = &http.distribution;
    for (server, id) in requests(http) {
        *given.entry(server).or_default() += 1;
        if distribution.weights.get(server) == Some(&0) {
            found.push(format!("request {id} was given to server {server}, of weight 0"));
        }
        if server < distribution.weights.len() {
            servers.entry(name_of(id)).or_default().insert(server);
        }
    }
    if !well || http.may_be_out {
        return found;
    }
    for (name, servers) in servers.iter().filter(|(_, servers)| servers.len() > 1) {
        if distribution.is_sticky {
            found.push(format!("visitors known by {name} were given to servers {servers:?}"));
        }
    }
    let is_exact = SCHEDULES.iter().any(|(word, exact)| *word == distribution.schedule && *exact);
    if is_exact && !distribution.is_sticky && http.is_alone && http.slots >= PLENTY {
        found.extend(uneven(distribution, &given));
    }
    found
}

/// A number of slots that a server never uses completely.
const PLENTY: usize = 1000;

/// Returns an error if a server received more than two rounds of requests too many or too few.
fn uneven(distribution: &Distribution, given: &BTreeMap<usize, u64>) -> Option<String> {
    let of = |place: usize| given.get(&place).copied().unwrap_or_default();
    let all: u64 = (0..distribution.weights.len()).map(of).sum();
    let weights = u64::from(distribution.weights.iter().sum::<u32>());
    let off = |(place, weight): (usize, &u32)| {
        (of(place) * weights).abs_diff(all * u64::from(*weight)) > 2 * weights
    };
    let is_uneven = distribution.weights.iter().enumerate().any(off);
    is_uneven.then(|| format!("weights {:?} were given {given:?}", distribution.weights))
}

/// Returns the requests of visitors that servers received, with their servers.
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
