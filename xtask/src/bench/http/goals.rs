//! What was asked for, held against what is stored. Pure.

use super::page::{median_of, ratio_of, row};
use serde_json::Value;

pub(super) const OURS: &str = "Roadstead";

pub(super) struct Goal {
    pub(super) text: String,
    pub(super) met: bool,
}

/// All goals of the parts that are stored; one whose numbers are not there is not told.
pub(super) fn all(stored: &[(&str, Value)]) -> Vec<Goal> {
    let part = |name: &str| stored.iter().find(|(part, _)| *part == name).map(|(_, value)| value);
    let mut goals = Vec::new();
    for (name, connections, peers, most, or_relay) in [
        ("128", 64, &["HAProxy", "nginx"][..], 0.8, 1.10),
        ("128", 1000, &["HAProxy", "nginx"], 0.65, 1.10),
        ("16k", 64, &["HAProxy", "nginx"], 0.9, 0.0),
        ("1m", 64, &["HAProxy"], 0.6, 0.0),
    ] {
        let Some(shape) = part(name).and_then(|shapes| row(shapes, connections)) else { continue };
        let lower = peers
            .iter()
            .filter_map(|peer| Some((median_of(shape, peer, "cpu_us")?, *peer)))
            .min_by(|one, other| one.0.total_cmp(&other.0));
        let relay = ratio_of(shape, OURS, "bare relay").map(|ratio| ratio.median);
        let ratio = lower.and_then(|(_, peer)| Some((ratio_of(shape, OURS, peer)?.median, peer)));
        let (Some((ratio, peer)), Some(relay)) = (ratio, relay) else { continue };
        let met = ratio <= most || relay <= or_relay;
        let at = format!("{name} at {connections} connections");
        let text =
            format!("{at}: at most {most:.2} × {peer}: {ratio:.2} (× bare relay: {relay:.2})");
        goals.push(Goal { text, met });
    }
    // Of few active ones nothing was asked but that they are measured.
    for (name, shapes) in stored.iter().filter(|(name, _)| *name != "few") {
        for shape in shapes.as_array().into_iter().flatten() {
            let Some(ratio) = ratio_of(shape, OURS, "bare relay") else { continue };
            let connections = &shape["connections"];
            let text = format!(
                "{name} at {connections} connections: at most 1.25 × the bare relay: {:.2}",
                ratio.median
            );
            goals.push(Goal { text, met: ratio.median <= 1.25 });
        }
    }
    if let Some(shape) = part("shards").and_then(|shapes| row(shapes, 64))
        && let Some(ratio) = ratio_of(shape, "two shards", "one shard")
    {
        let text = format!("two shards: at most 1.10 × one shard: {:.2}", ratio.median);
        goals.push(Goal { text, met: ratio.median <= 1.1 });
    }
    let of = |part: Option<&Value>, subject: &str, what: &str| {
        part.and_then(|part| part["subjects"][subject][what].as_f64())
    };
    if let Some(calls) = part("calls").and_then(|part| part["128"][OURS]["all"].as_f64()) {
        let text = format!("system calls a request, 128 bytes: at most 4.1: {calls:.2}");
        goals.push(Goal { text, met: calls <= 4.1 });
    }
    let counted = part("instructions");
    if let Some(allocations) = of(counted, OURS, "allocations") {
        let text = format!("allocations a request: none: {allocations:.3}");
        goals.push(Goal { text, met: allocations < 0.001 });
    }
    for peer in ["HAProxy", "nginx"] {
        let both = of(counted, OURS, "instructions").zip(of(counted, peer, "instructions"));
        if let Some((ours, theirs)) = both {
            let text = format!("instructions: at most half of {peer}'s: {ours:.0} and {theirs:.0}");
            goals.push(Goal { text, met: ours * 2.0 <= theirs });
        }
    }
    if let Some(bytes) = of(part("memory"), OURS, "bytes") {
        let text = format!("an idle connection: at most 300 bytes of memory: {bytes:.0}");
        goals.push(Goal { text, met: bytes <= 300.0 });
    }
    for peer in ["HAProxy", "nginx"] {
        let Some(paced) = part("paced") else { continue };
        let both = median_of(paced, OURS, "p99_us").zip(median_of(paced, peer, "p99_us"));
        if let Some((ours, theirs)) = both {
            let text =
                format!("p99 at equal pace not above {peer}'s: {ours:.0} and {theirs:.0} µs");
            goals.push(Goal { text, met: ours <= theirs });
        }
    }
    goals
}
