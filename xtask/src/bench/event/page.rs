//! The page of `bench loop`: tables of the results, and the goals.

use super::echo::{Cell, Shape};
use super::part::Part;
use crate::bench::goals::{Goal, list};
use crate::bench::template::{Template, row};

pub(super) const TEXT: Template = Template(include_str!("../../../pages/loop.md"));

/// Returns the section of one shape.
pub(super) fn echo(shape: &Shape) -> Part {
    let numbers = shape
        .cells
        .iter()
        .filter(|cell| cell.name == "event, epoll")
        .flat_map(|cell| [("calls", cell.calls), ("memory", cell.memory)])
        .map(|(what, value)| (format!("{what} {} {}", shape.connections, shape.active), value));
    Part {
        text: table(shape),
        goals: shape_goals(shape),
        numbers: numbers.collect(),
        made: String::new(),
    }
}

/// Returns the section of the trigger modes.
pub(super) fn triggers(shape: &Shape) -> Part {
    let text = table(shape).replacen("### ", "### Triggers, ", 1).replace("× bare loop", "× level");
    Part::of(text)
}

/// Returns the table of one shape.
fn table(shape: &Shape) -> String {
    let Shape { connections, active, cells } = shape;
    let line = |cell: &Cell| {
        let Cell { name, cpu_us, user_part, by_bare, calls_by_name, memory, .. } = cell;
        let [cpu, ratio] = [cpu_us, by_bare].map(|of| of.digits(2));
        let user = format!("{:.0} %", user_part.median * 100.0);
        let is_exact = *connections >= 1000;
        let memory = if is_exact { format!("{memory:.0}") } else { "–".to_owned() };
        row(&[name, &cpu, &user, &ratio, calls_by_name, &memory])
    };
    let rows: String = cells.iter().map(line).collect();
    TEXT.fill("echo", &[("connections", connections), ("active", active), ("rows", &rows)])
}

/// Returns the goals of one shape, and whether they were met.
fn shape_goals(shape: &Shape) -> Vec<Goal> {
    let cell = |name: &str| shape.cells.iter().find(|cell| cell.name == name);
    let at = format!("{} connections, {} active", shape.connections, shape.active);
    let Some(ours) = cell("event, epoll") else { return Vec::new() };
    let (cpu, by_bare) = (ours.cpu_us.median, ours.by_bare.median);
    let mut goals =
        vec![(format!("{at}: at most 1.10 × the bare loop ({by_bare:.2})"), by_bare <= 1.10)];
    for (peer, from) in [("mio", 0), ("tokio", 100), ("libevent", 100)] {
        if let Some(theirs) = cell(peer).filter(|_| shape.connections >= from) {
            // Ratios are taken within a round, because the speed of the machine changes between rounds.
            let ratio = by_bare / theirs.by_bare.median;
            let theirs = theirs.cpu_us.median;
            let text = format!(
                "{at}: not above {peer} ({cpu:.2} and {theirs:.2} µs; by ratios to the bare loop {ratio:.3})"
            );
            goals.push((text, ratio <= 1.0));
        }
    }
    goals
}

/// Returns the goals of all parts.
pub(super) fn goals(parts: &[Part]) -> Vec<Goal> {
    let mut goals: Vec<_> = parts.iter().flat_map(|part| part.goals.iter().cloned()).collect();
    let number = |name: &str| parts.iter().find_map(|part| part.numbers.get(name).copied());
    if let (Some(few), Some(many)) = (number("calls 100 100"), number("calls 9100 100")) {
        let text = format!("system calls a request with 0 and 9000 idle ({few:.3} and {many:.3})");
        goals.push((text, (few - many).abs() <= 0.02 * few));
    }
    if let Some(memory) = number("memory 9500 9500") {
        let text = format!("an idle connection costs at most 256 bytes ({memory:.0})");
        goals.push((text, memory <= 256.0));
    }
    goals
}

/// The heading of the last section.
pub(super) const GOALS: &str = "## What was asked for";

/// Returns the page for the documentation.
pub(super) fn page(parts: &[Part]) -> String {
    let mut made: Vec<&str> = parts.iter().map(|part| part.made.as_str()).collect();
    made.sort_unstable();
    made.dedup();
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let (made, texts, goals) = (made.join("; "), texts.join("\n"), list(&goals(parts)));
    TEXT.fill("page", &[("made", &made), ("parts", &texts), ("goals", &goals)])
}
