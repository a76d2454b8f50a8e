//! Checks the guarantees of the gateway to visitors after a run.
//!
//! - A body is the body that a server sent for this request. A body that is marked as complete is complete.
//! - A request that may have an effect is given to at most one server.
//! - A request fails only if it had a fault that a retry could not fix, or if no server was available for some time.
//! - A body that is too long and a request that is never completed are rejected, and no others.
//! - The access log contains, for each request, the reply that its visitor received.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::check::distribution;
use crate::check::ends::{Ends, Found};
use crate::clients::End;
use crate::http::message;
use crate::http::message::{Reply, RequestKind};
use crate::http::servers::{Fault, Link};
use crate::http::speakers::{Http, Role};
use crate::http::visitors::{Visitor, VisitorRequest};
use crate::scenario::Scenario;
use crate::scheduled_event::Moment;

/// How often a request may be lost before it is not retried, and how many may be lost in a world before the gateway may
/// have no retry budget left. Both follow from the rules of the gateway.
const TRIES_MAX: u32 = 3;

const LOST_MAX: u32 = 15;

/// The number of programs that must have ended too early before a pool rejects new requests, as its rule states.
const CLOSED_AFTER: u32 = 5;

/// How long after a shortage of system resources workers may be missing: the delay after which a pool tries to start
/// one again.
const STARVED: Duration = Duration::from_secs(5);

/// The faults of a request.
#[derive(Clone, Copy, Debug, Default)]
struct RequestFaults {
    /// The number of servers that received a byte of it.
    given: u32,
    /// How often it was lost before its reply had begun.
    lost: u32,
    /// Whether it was lost in a way that permits no retry.
    spoilt: bool,
}

/// All faults.
#[derive(Debug, Default)]
struct Account {
    requests: BTreeMap<u64, RequestFaults>,
    lost: u32,
    /// The number of connections with a fault.
    lost_links: u32,
    /// Whether a request was lost before enough bytes arrived to identify it.
    unknown: bool,
}

impl Account {
    fn of(http: &Http) -> Self {
        let mut account = Self { lost_links: http.host_history.cut_short, ..Self::default() };
        for speaker in &http.speakers {
            if let Role::Server(link) = &speaker.role {
                account.add(link);
            }
        }
        account
    }

    fn add(&mut self, link: &Link) {
        self.lost_links += u32::from(link.fault.is_some());
        // Bytes after a 101 are no request.
        let end = link.tunnel.map_or(link.given.len(), |tunnel| tunnel.at);
        let (mut rest, mut place) = (&link.given[..end], 0);
        while !rest.is_empty() {
            let request = message::request(rest).ok().flatten();
            let id = request.as_ref().map(|request| request.id).or_else(|| message::begun(rest));
            let used = request.and_then(|request| request.whole).map(|(_, used)| used);
            self.blame(link, id, place);
            rest = &rest[used.unwrap_or(rest.len())..];
            place += 1;
        }
    }

    /// Records the faults of a request. `place`: its position among the requests that the connection was given.
    fn blame(&mut self, link: &Link, id: Option<u64>, place: usize) {
        let Some(id) = id else {
            self.unknown = true;
            return;
        };
        let wrong = self.requests.entry(id).or_default();
        wrong.given += 1;
        // After a cut it is unknown how much of the last reply arrived.
        let since = link.answers - usize::from(link.fault == Some(Fault::Cut)).min(link.answers);
        match link.fault {
            Some(Fault::Before) if place >= since => {
                wrong.lost += 1;
                self.lost += 1;
            }
            Some(Fault::Within | Fault::Cut) if place >= since => wrong.spoilt = true,
            _ => {}
        }
    }

    /// Whether the failure of a request is excused.
    fn excuses(&self, http: &Http, ask: VisitorRequest, time: (Moment, Moment)) -> bool {
        let wrong = self.requests.get(&ask.id).copied().unwrap_or_default();
        let nobody = !http.is_hosts && !http.servers.iter().any(|server| server.steady);
        let often = wrong.lost >= TRIES_MAX || self.lost > LOST_MAX;
        nobody
            || http.starved.iter().any(|at| time.0 <= *at + STARVED && *at <= time.1)
            || self.unknown
            || wrong.spoilt
            // The rest of its body was requested for a server that then accepted nothing. With chunks there is always
            // at least the last chunk left.
            || (wrong.given == 0 && (ask.length > 0 || ask.chunked) && self.lost_links > 0)
            // A request for another protocol is not retried.
            || (wrong.lost > 0 && (ask.is_post || ask.request_kind.upgrades() || often))
    }
}

/// Checks everything that is visible from outside, and counts the replies by status.
pub(crate) fn check(http: &mut Http, scenario: &Scenario, is_clean: bool) -> Found {
    let (mut ends, mut found) = (Ends::new(), Vec::new());
    let log = http.log.take();
    let http = &*http;
    // Replies may be shifted, so it is unknown which visitor receives which reply.
    if http.answers_twice {
        *ends.entry("twice").or_default() += 1;
        return Found { ends, violations: found };
    }
    http.check_log(log, scenario.shards, &mut found);
    let account = Account::of(http);
    for (number, speaker) in http.speakers.iter().enumerate() {
        let Role::Visitor(visitor) = &speaker.role else { continue };
        check_bodies(http, number, visitor, &mut found);
        for ask in visitor.asks.iter().filter(|ask| ask.is_post) {
            let given = account.requests.get(&ask.id).map_or(0, |wrong| wrong.given);
            if given > 1 {
                found.push(format!(
                    "request {} may have an effect and was given {given} times",
                    ask.id
                ));
            }
        }
        if speaker.excused || !is_clean {
            continue;
        }
        if let Some(text) = failure(http, &account, visitor, speaker.end, &mut ends) {
            found.push(format!("visitor {number}: {text}"));
        }
    }
    let well = scenario.trouble == 0 && account.lost_links == 0 && http.starved.is_empty();
    found.extend(distribution::check(http, well));
    Found { ends, violations: found }
}

fn check_bodies(http: &Http, number: usize, visitor: &Visitor, found: &mut Vec<String>) {
    for (ask, reply) in visitor.asks.iter().zip(&visitor.answers) {
        let said = http.said.get(&ask.id).map_or(&[][..], Vec::as_slice);
        let right = match (reply.status, reply.is_whole) {
            (101 | 200, true) => said.contains(&reply.body),
            (101 | 200, false) => said.iter().any(|body| body.starts_with(&reply.body)),
            // If the network cut its connection, it may be incomplete, as any reply of the gateway.
            (408, _) => ask.stalls.is_some(),
            (413, _) => ask.is_too_long(http.body_max),
            (status, _) => matches!(status, 502..=504),
        };
        if !right {
            let body = &reply.body[..reply.body.len().min(40)];
            found.push(format!(
                "visitor {number} asked {} and got {} ({} bytes, whole: {}): {}",
                ask.id,
                reply.status,
                reply.body.len(),
                reply.is_whole,
                body.escape_ascii()
            ));
        }
    }
}

/// Whether a reply is the expected one.
fn is_well(http: &Http, ask: VisitorRequest, reply: &Reply) -> bool {
    // A server that answers early need not detect what is wrong with the rest of the request.
    let early = http.early.contains(&ask.id);
    let due = match reply.status {
        101 | 200 => early || !(ask.is_too_long(http.body_max) || ask.stalls.is_some()),
        408 => ask.stalls.is_some(),
        413 => ask.is_too_long(http.body_max),
        _ => false,
    };
    due && reply.is_whole
}

/// Returns the first request of a visitor that failed without an excuse.
fn failure(
    http: &Http,
    account: &Account,
    visitor: &Visitor,
    end: Option<End>,
    ends: &mut Ends,
) -> Option<String> {
    for (place, ask) in visitor.asks.iter().enumerate() {
        let reply = visitor.answers.get(place);
        let well = reply.is_some_and(|reply| is_well(http, *ask, reply));
        let time = visitor.times.get(place).copied().unwrap_or((Moment::ZERO, Moment::MAX));
        let word = match reply {
            Some(reply) if !reply.is_whole => "cut off",
            Some(reply) if reply.status == 200 => "200",
            Some(reply) if reply.status == 101 => "101",
            Some(reply) if reply.status == 408 => "408",
            Some(reply) if reply.status == 413 => "413",
            Some(reply) if reply.status == 502 => "502",
            Some(reply) if reply.status == 503 => "503",
            Some(_) => "504",
            None => "none",
        };
        *ends.entry(word).or_default() += 1;
        let out = http.may_be_out && account.lost_links > 0;
        // A pool whose programs end repeatedly rejects requests immediately.
        let closed = http.host_history.cut_short >= CLOSED_AFTER;
        let refusal = reply.is_some_and(|reply| reply.status == 503);
        // If a fallback pool answers, no visitor receives the fallback response.
        let may_fall_back = http.may_fall_back && http.distribution.spare.is_none();
        let fallback = refusal && (may_fall_back || out || closed);
        // A reset may destroy earlier bytes: here, replies that the visitor had not read.
        let after = visitor.asks.get(place + 1..visitor.begun).unwrap_or_default();
        let by_reset = |it: &VisitorRequest| it.request_kind.is_old() || it.request_kind.upgrades();
        let cut_off = |it: &VisitorRequest| by_reset(it) && account.excuses(http, *it, time);
        let unread = reply.is_none_or(|reply| !reply.is_whole) && end == Some(End::Reset);
        // The same applies to bytes that were sent too early for a tunnel that was not established.
        let asks = &visitor.asks[place..visitor.begun.max(place)];
        let eager = asks.iter().any(|it| it.request_kind == RequestKind::Upgrades { eager: true });
        let lost = unread && (eager || after.iter().any(cut_off));
        // A reply that began too early cannot be revoked if the rest of the body is too long.
        let over = ask.is_too_long(http.body_max) && http.early.contains(&ask.id);
        if !well && !fallback && !lost && !over && !account.excuses(http, *ask, time) {
            let wrong = account.requests.get(&ask.id);
            return Some(format!("{ask:?} failed without need: {word}, {end:?}, {wrong:?}"));
        }
        // No request is answered after a reply that ends the connection, nor after the reply to an incomplete request:
        // the rest of that request must not be parsed as the next one.
        if http.early.contains(&ask.id) {
            return None;
        }
        if !well && reply.is_none_or(|reply| !reply.is_whole) || reply.is_some_and(|it| it.closes) {
            return None;
        }
    }
    None
}
