//! The goals that were set before the first measurement, compared with the stored results. Pure.
//!
//! A goal is never moved to a weaker peer, a weaker configuration of a peer, or a smaller number of shapes: a missed
//! goal is shown as missed.

use crate::bench::goals::{Goal, at_most};
use crate::bench::trial::Trial;
use serde_json::Value;

/// The name of Roadstead among the subjects.
pub(super) const OURS: &str = "Roadstead";
pub(super) const RELAY: &str = "bare relay";
pub(super) const PEERS: [&str; 2] = ["HAProxy", "nginx"];

/// A maximum ratio to the CPU time of the cheapest of some peers: the part, the shape in words, its connections, the
/// peers, the maximum, and the maximum for the bare relay that also meets the goal.
type CpuGoal = (&'static str, &'static str, u64, &'static [&'static str], f64, Option<f64>);

const CPU: [CpuGoal; 4] = [
    ("128", "128 bytes, 64 connections", 64, &PEERS, 0.8, Some(1.1)),
    ("128", "128 bytes, 1000 connections", 1000, &PEERS, 0.65, Some(1.1)),
    ("16k", "16 KiB, 64 connections", 64, &PEERS, 0.9, None),
    ("1m", "1 MiB, 64 connections", 64, &["HAProxy"], 0.6, None),
];

/// The maximum ratio to the bare relay in every shape.
const OF_RELAY_MAX: f64 = 1.25;
const CALLS_MAX: f64 = 4.1;
/// Fewer than one allocation in a thousand requests counts as none.
const ALLOCATIONS_MAX: f64 = 0.001;
const IDLE_BYTES_MAX: f64 = 300.0;

/// Returns all goals of the parts. A goal whose numbers are not there is omitted.
pub(super) fn all(parts: &[(&str, Value)]) -> Vec<Goal> {
    let part = |name: &str| parts.iter().find(|(part, _)| *part == name).map(|(_, value)| value);
    let shapes = parts.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let of_128 = part("instructions").map(|part| &part["sizes"]["128"]["subjects"]);
    let mut goals: Vec<Goal> = Vec::new();
    for (name, shape, connections, peers, of_peer_max, of_relay_max) in CPU {
        let trial = part(name).and_then(|shapes| trial(shapes, connections));
        goals.extend(trial.and_then(|trial| cpu(&trial, shape, peers, of_peer_max, of_relay_max)));
    }
    goals.extend(shapes.filter_map(of_relay));
    goals.extend(part("shards").and_then(shards));
    goals.extend(part("calls").and_then(calls));
    goals.extend(of_128.and_then(allocations));
    goals.extend(of_128.and_then(instructions));
    goals.extend(part("memory").and_then(memory));
    if let Some(paced) = part("paced") {
        let trial = Trial::read(&paced["subjects"]);
        goals.extend(PEERS.into_iter().filter_map(|peer| latency(&trial, peer)));
    }
    goals
}

/// Returns the samples of the shape with this number of connections.
fn trial(shapes: &Value, connections: u64) -> Option<Trial> {
    let mut shapes = shapes.as_array()?.iter();
    let shape = shapes.find(|shape| shape["connections"].as_u64() == Some(connections))?;
    Some(Trial::read(&shape["subjects"]))
}

fn cpu(
    trial: &Trial,
    shape: &str,
    peers: &[&str],
    of_peer_max: f64,
    of_relay_max: Option<f64>,
) -> Option<Goal> {
    let peers_there: Vec<&str> = peers.iter().copied().filter(|peer| trial.has(peer)).collect();
    let (_, cheapest) = cheapest(&peers_there, |peer| Some(trial.median(peer, "cpu_us")))?;
    let ratio = |peer| trial.ratio("cpu_us", OURS, peer).median;
    let (of_peer, of_relay) = (ratio(cheapest), ratio(RELAY));
    let mut text = format!("{shape}: CPU at most {of_peer_max:.2} × that of {}", cheaper_of(peers));
    if let Some(max) = of_relay_max {
        text.push_str(&format!(", or at most {max:.2} × that of the bare relay"));
    }
    let measured = format!("{of_peer:.2} × {cheapest}, {of_relay:.2} × bare relay");
    let met = of_peer <= of_peer_max || of_relay_max.is_some_and(|max| of_relay <= max);
    Some((text, measured, met))
}

fn cheaper_of(peers: &[&str]) -> String {
    match peers {
        [only] => (*only).to_owned(),
        all => format!("the cheaper of {}", all.join(" and ")),
    }
}

fn of_relay(shape: &Value) -> Option<Goal> {
    let trial = Trial::read(&shape["subjects"]);
    let (size, connections, active) = (&shape["size"], &shape["connections"], &shape["active"]);
    let active = if active == connections { String::new() } else { format!(", {active} active") };
    let plural = if connections == 1 { "" } else { "s" };
    let text = format!(
        "{size} bytes, {connections} connection{plural}{active}: CPU at most {OF_RELAY_MAX} × that of the bare relay"
    );
    let ratio = trial.ratio("cpu_us", OURS, RELAY).median;
    (trial.has(OURS) && trial.has(RELAY)).then(|| at_most(text, ratio, OF_RELAY_MAX))
}

fn shards(shapes: &Value) -> Option<Goal> {
    let ratio = trial(shapes, 64)?.ratio("cpu_us", "two shards", "one shard").median;
    Some(at_most("64 connections on two shards: CPU at most 1.10 × that of one shard", ratio, 1.1))
}

fn calls(calls: &Value) -> Option<Goal> {
    let text = format!("128 bytes: at most {CALLS_MAX} system calls per request");
    Some(at_most(text, calls["128"][OURS]["all"].as_f64()?, CALLS_MAX))
}

fn allocations(counted: &Value) -> Option<Goal> {
    let allocations = counted[OURS]["allocations"].as_f64()?;
    let text = "128 bytes: no allocation (fewer than one in 1,000 requests)".to_owned();
    let measured = format!("{allocations:.4} per request");
    Some((text, measured, allocations < ALLOCATIONS_MAX))
}

/// The goal is half of the better of the two peers.
fn instructions(counted: &Value) -> Option<Goal> {
    let of = |subject: &str| counted[subject]["instructions"].as_f64();
    let ours = of(OURS)?;
    let (theirs, peer) = cheapest(&PEERS, of)?;
    let text = "128 bytes: at most half of the instructions of the cheaper of HAProxy and nginx";
    let measured = format!("{ours:.0}, {peer} {theirs:.0}: {:.2}", ours / theirs);
    Some((text.to_owned(), measured, ours * 2.0 <= theirs))
}

fn memory(memory: &Value) -> Option<Goal> {
    let bytes = memory["subjects"][OURS]["bytes"].as_f64()?;
    let text = format!("an idle connection: at most {IDLE_BYTES_MAX} bytes of memory");
    Some((text, format!("{bytes:.0}"), bytes <= IDLE_BYTES_MAX))
}

fn latency(paced: &Trial, peer: &str) -> Option<Goal> {
    let [ours, theirs] = [OURS, peer].map(|name| paced.median(name, "p99_us"));
    let text = format!("99th percentile of the latency at equal load: at most that of {peer}");
    let measured = format!("{ours:.0} and {theirs:.0} µs");
    (paced.has(OURS) && paced.has(peer)).then_some((text, measured, ours <= theirs))
}

/// Returns the peer with the lowest number, and the number.
fn cheapest<'a>(peers: &[&'a str], of: impl Fn(&str) -> Option<f64>) -> Option<(f64, &'a str)> {
    let each = peers.iter().filter_map(|peer| Some((of(peer)?, *peer)));
    each.min_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(connections: u64, [relay, haproxy, nginx, ours]: [f64; 4]) -> Value {
        let of = |name: &str, cpu_us: f64| json!([name, [{ "cpu_us": cpu_us }]]);
        json!({ "connections": connections, "active": connections, "size": 128, "subjects": [
            of(RELAY, relay), of("HAProxy", haproxy), of("nginx", nginx), of(OURS, ours)
        ]})
    }

    fn met(goals: &[Goal], text: &str) -> bool {
        let found = goals.iter().find(|goal| goal.0.contains(text));
        found.unwrap_or_else(|| panic!("no goal says {text}")).2
    }

    #[test]
    fn cpu_is_compared_with_the_cheaper_peer() {
        let of = |ours| all(&[("128", json!([shape(64, [10.0, 20.0, 14.0, ours])]))]);
        assert!(met(&of(11.2), "64 connections: CPU at most 0.80"));
        assert!(!met(&of(11.3), "64 connections: CPU at most 0.80"), "0.8 × HAProxy is not enough");
        assert!(met(&of(12.5), "at most 1.25"));
        assert!(!met(&of(12.6), "at most 1.25"));
    }

    #[test]
    fn few_active_connections_have_the_goal_of_all_shapes() {
        let goals = all(&[("few", json!([shape(1000, [10.0, 20.0, 14.0, 13.0])]))]);
        assert!(!met(&goals, "at most 1.25"));
    }

    #[test]
    fn instructions_are_compared_with_the_cheaper_peer() {
        let of = |count: f64| json!({ "instructions": count, "allocations": 0.001 });
        let subjects =
            json!({ "HAProxy": of(30_000.0), "nginx": of(16_000.0), OURS: of(11_000.0) });
        let goals =
            all(&[("instructions", json!({ "sizes": { "128": { "subjects": subjects } } }))]);
        assert!(!met(&goals, "half of the instructions"), "half of HAProxy's is not enough");
        assert!(!met(&goals, "no allocation"), "one in 1,000 is not fewer than one in 1,000");
    }
}
