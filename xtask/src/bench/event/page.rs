//! The page of `bench loop`: tables of the echo, and its goals.

use super::echo::Shape;
use crate::bench::driver::Part;
use crate::bench::goals::{Goal, at_most};
use crate::bench::page::{Template, row};
use serde_json::json;

pub(super) const TEXT: Template = Template(include_str!("../../../pages/loop.md"));

/// Our loop among the servers.
const OURS: &str = "event, epoll";

/// Returns the section of one shape.
pub(super) fn echo(shape: &Shape) -> Part {
    let Shape { connections, active, trial } = shape;
    let [calls, memory] = ["calls", "memory"].map(|what| trial.median(OURS, what));
    let shape_name = format!("{connections} {active}");
    let values = json!({ "shape": shape_name, "calls": calls, "memory": memory });
    Part { goals: shape_goals(shape), values, ..Part::text(table(shape)) }
}

/// Returns the section of the trigger modes.
pub(super) fn triggers(shape: &Shape) -> Part {
    let text = table(shape).replacen("### ", "### Triggers, ", 1).replace("× bare loop", "× level");
    Part::text(text)
}

/// Returns the table of one shape. The first server is the one that the others are compared with.
fn table(shape: &Shape) -> String {
    let Shape { connections, active, trial } = shape;
    let first = trial.names().next().unwrap_or_default();
    let line = |name: &str| {
        let user = format!("{:.0} %", trial.median(name, "user_part") * 100.0);
        let is_exact = *connections >= 1000;
        let memory = trial.median(name, "memory");
        let memory = if is_exact { format!("{memory:.0}") } else { "–".to_owned() };
        let (cpu, ratio) = (trial.of(name, "cpu_us"), trial.ratio("cpu_us", name, first));
        let calls = trial.last(name)["calls_by_name"].as_str().unwrap_or_default();
        row(&[&name, &cpu.digits(2), &user, &ratio.digits(2), &calls, &memory])
    };
    let rows: String = trial.names().map(line).collect();
    TEXT.fill("echo", &[("connections", connections), ("active", active), ("rows", &rows)])
}

/// Returns the goals of one shape.
fn shape_goals(shape: &Shape) -> Vec<Goal> {
    let Shape { connections, active, trial } = shape;
    let at = format!("{connections} connections, {active} active");
    let by_bare = |name| trial.ratio("cpu_us", name, "bare epoll").median;
    let mut goals =
        vec![at_most(format!("{at}: at most 1.10 × the bare loop"), by_bare(OURS), 1.1)];
    for (peer, from) in [("mio", 0), ("tokio", 100), ("libevent", 100)] {
        if trial.has(peer) && *connections >= from {
            // Ratios are taken within a round, because the speed of the machine changes between rounds.
            let ratio = by_bare(OURS) / by_bare(peer);
            let [ours, theirs] = [OURS, peer].map(|name| trial.median(name, "cpu_us"));
            let measured =
                format!("{ours:.2} and {theirs:.2} µs; by ratios to the bare loop {ratio:.3}");
            goals.push((format!("{at}: not above {peer}"), measured, ratio <= 1.0));
        }
    }
    goals
}

/// Returns the goals over several parts.
pub(super) fn goals(parts: &[Part]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let number = |shape: &str, what: &str| {
        let part = parts.iter().find(|part| part.values["shape"] == shape)?;
        part.values[what].as_f64()
    };
    if let (Some(few), Some(many)) = (number("100 100", "calls"), number("9100 100", "calls")) {
        let text = "system calls a request with 0 and 9000 idle".to_owned();
        let met = (few - many).abs() <= 0.02 * few;
        goals.push((text, format!("{few:.3} and {many:.3}"), met));
    }
    if let Some(memory) = number("9500 9500", "memory") {
        let text = "an idle connection costs at most 256 bytes".to_owned();
        goals.push((text, format!("{memory:.0}"), memory <= 256.0));
    }
    goals
}
