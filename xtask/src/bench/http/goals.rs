//! The goals that were set before the first measurement, compared with the stored results. Pure.
//!
//! A goal is never moved to a weaker peer, a weaker configuration of a peer, or a smaller number of shapes: a missed
//! goal is shown as missed.

use super::figures::{OURS, median_of, ratio_of, row};
use serde_json::Value;

const RELAY: &str = "bare relay";
const PEERS: [&str; 2] = ["HAProxy", "nginx"];

pub(super) struct Goal {
    pub(super) text: String,
    /// The measured value, in words.
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The maximum ratio to the CPU time of the cheapest of these peers, or of the bare relay.
struct CpuGoal {
    part: &'static str,
    shape: &'static str,
    connections: u64,
    peers: &'static [&'static str],
    of_peer_max: f64,
    of_relay_max: Option<f64>,
}

const CPU: [CpuGoal; 4] = [
    CpuGoal::new("128", "128 bytes, 64 connections", 64, &PEERS, 0.8, Some(1.1)),
    CpuGoal::new("128", "128 bytes, 1000 connections", 1000, &PEERS, 0.65, Some(1.1)),
    CpuGoal::new("16k", "16 KiB, 64 connections", 64, &PEERS, 0.9, None),
    CpuGoal::new("1m", "1 MiB, 64 connections", 64, &["HAProxy"], 0.6, None),
];

impl CpuGoal {
    const fn new(
        part: &'static str,
        shape: &'static str,
        connections: u64,
        peers: &'static [&'static str],
        of_peer_max: f64,
        of_relay_max: Option<f64>,
    ) -> Self {
        Self { part, shape, connections, peers, of_peer_max, of_relay_max }
    }
}

/// The maximum ratio to the bare relay in every shape.
const OF_RELAY_MAX: f64 = 1.25;
const CALLS_MAX: f64 = 4.1;
/// Fewer than one allocation in a thousand requests counts as none.
const ALLOCATIONS_MAX: f64 = 0.001;
const IDLE_BYTES_MAX: f64 = 300.0;

/// Returns all goals of the stored parts. A goal whose numbers are not stored is omitted.
pub(super) fn all(stored: &[(&str, Value)]) -> Vec<Goal> {
    let part = |name: &str| stored.iter().find(|(part, _)| *part == name).map(|(_, value)| value);
    let mut goals: Vec<Goal> = CPU.iter().filter_map(|goal| cpu(part(goal.part)?, goal)).collect();
    for (_, shapes) in stored {
        goals.extend(shapes.as_array().into_iter().flatten().filter_map(of_relay));
    }
    goals.extend(part("shards").and_then(shards));
    goals.extend(part("calls").and_then(calls));
    if let Some(counted) = part("instructions").map(|part| &part["sizes"]["128"]["subjects"]) {
        goals.extend(allocations(counted));
        goals.extend(instructions(counted));
    }
    goals.extend(part("memory").and_then(memory));
    if let Some(paced) = part("paced") {
        goals.extend(PEERS.into_iter().filter_map(|peer| latency(paced, peer)));
    }
    goals
}

fn cpu(shapes: &Value, goal: &CpuGoal) -> Option<Goal> {
    let CpuGoal { shape: name, connections, peers, of_peer_max, of_relay_max, .. } = goal;
    let shape = row(shapes, *connections)?;
    let (_, cheapest) = cheapest(peers, |peer| median_of(shape, peer, "cpu_us"))?;
    let of_peer = ratio_of(shape, OURS, cheapest)?.median;
    let of_relay = ratio_of(shape, OURS, RELAY)?.median;
    let mut text = format!("{name}: CPU at most {of_peer_max:.2} × that of {}", cheaper_of(peers));
    if let Some(max) = of_relay_max {
        text.push_str(&format!(", or at most {max:.2} × that of the bare relay"));
    }
    let measured = format!("{of_peer:.2} × {cheapest}, {of_relay:.2} × bare relay");
    let met = of_peer <= *of_peer_max || of_relay_max.is_some_and(|max| of_relay <= max);
    Some(Goal { text, measured, met })
}

fn cheaper_of(peers: &[&str]) -> String {
    match peers {
        [only] => (*only).to_owned(),
        all => format!("the cheaper of {}", all.join(" and ")),
    }
}

fn of_relay(shape: &Value) -> Option<Goal> {
    let ratio = ratio_of(shape, OURS, RELAY)?.median;
    let (size, connections, active) = (&shape["size"], &shape["connections"], &shape["active"]);
    let active = if active == connections { String::new() } else { format!(", {active} active") };
    let plural = if connections == 1 { "" } else { "s" };
    Some(Goal {
        text: format!(
            "{size} bytes, {connections} connection{plural}{active}: CPU at most {OF_RELAY_MAX} × that of the bare relay"
        ),
        measured: format!("{ratio:.2}"),
        met: ratio <= OF_RELAY_MAX,
    })
}

fn shards(shapes: &Value) -> Option<Goal> {
    let ratio = ratio_of(row(shapes, 64)?, "two shards", "one shard")?.median;
    let text = "64 connections on two shards: CPU at most 1.10 × that of one shard".to_owned();
    Some(Goal { text, measured: format!("{ratio:.2}"), met: ratio <= 1.1 })
}

fn calls(calls: &Value) -> Option<Goal> {
    let calls = calls["128"][OURS]["all"].as_f64()?;
    let text = format!("128 bytes: at most {CALLS_MAX} system calls per request");
    Some(Goal { text, measured: format!("{calls:.2}"), met: calls <= CALLS_MAX })
}

fn allocations(counted: &Value) -> Option<Goal> {
    let allocations = counted[OURS]["allocations"].as_f64()?;
    let text = "128 bytes: no allocation (fewer than one in 1,000 requests)".to_owned();
    let measured = format!("{allocations:.4} per request");
    Some(Goal { text, measured, met: allocations < ALLOCATIONS_MAX })
}

/// The goal is half of the better of the two peers.
fn instructions(counted: &Value) -> Option<Goal> {
    let of = |subject: &str| counted[subject]["instructions"].as_f64();
    let ours = of(OURS)?;
    let (theirs, peer) = cheapest(&PEERS, of)?;
    let text = "128 bytes: at most half of the instructions of the cheaper of HAProxy and nginx";
    let measured = format!("{ours:.0}, {peer} {theirs:.0}: {:.2}", ours / theirs);
    Some(Goal { text: text.to_owned(), measured, met: ours * 2.0 <= theirs })
}

fn memory(memory: &Value) -> Option<Goal> {
    let bytes = memory["subjects"][OURS]["bytes"].as_f64()?;
    let text = format!("an idle connection: at most {IDLE_BYTES_MAX} bytes of memory");
    Some(Goal { text, measured: format!("{bytes:.0}"), met: bytes <= IDLE_BYTES_MAX })
}

fn latency(paced: &Value, peer: &str) -> Option<Goal> {
    let [ours, theirs] = [OURS, peer].map(|name| median_of(paced, name, "p99_us"));
    let (ours, theirs) = ours.zip(theirs)?;
    let text = format!("99th percentile of the latency at equal load: at most that of {peer}");
    Some(Goal { text, measured: format!("{ours:.0} and {theirs:.0} µs"), met: ours <= theirs })
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
        let of = |cpu_us: f64| json!([{ "cpu_us": cpu_us }]);
        json!({ "connections": connections, "active": connections, "size": 128, "subjects": {
            "bare relay": of(relay), "HAProxy": of(haproxy), "nginx": of(nginx), "Roadstead": of(ours)
        }})
    }

    fn met(goals: &[Goal], text: &str) -> bool {
        let found = goals.iter().find(|goal| goal.text.contains(text));
        found.unwrap_or_else(|| panic!("no goal says {text}")).met
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
