//! The page of `bench loop`: tables of what was measured, and what was asked for.

use super::echo::{Cell, Shape};
use super::part::Part;
use crate::bench::page::Machine;
use crate::bench::statistics::Quartiles;

fn shown(of: Quartiles) -> String {
    format!("{:.2} [{:.2}–{:.2}]", of.median, of.low, of.high)
}

/// The section of one shape.
pub(super) fn echo(shape: &Shape) -> Part {
    let numbers = shape
        .cells
        .iter()
        .filter(|cell| cell.name == "event, epoll")
        .flat_map(|cell| [("calls", cell.calls), ("memory", cell.memory)])
        .map(|(what, value)| (format!("{what} {} {}", shape.connections, shape.active), value));
    Part {
        text: table(shape) + "\n",
        goals: shape_goals(shape),
        numbers: numbers.collect(),
        made: String::new(),
    }
}

/// The section of the ways to be told.
pub(super) fn triggers(shape: &Shape) -> Part {
    let text = table(shape).replacen("### ", "### Triggers, ", 1).replace("× bare loop", "× level");
    Part { text: text + "\n", ..Part::default() }
}

/// The table of one shape.
fn table(shape: &Shape) -> String {
    let Shape { connections, active, cells } = shape;
    let mut text = format!(
        "### {connections} connections, {active} active\n\n\
         | Server | CPU µs a request | of it user | × bare loop | system calls a request | bytes of memory a connection |\n\
         |---|---|---|---|---|---|\n"
    );
    for cell in cells {
        let Cell { name, cpu_us, user_part, by_bare, calls_by_name, memory, .. } = cell;
        let [cpu, ratio] = [*cpu_us, *by_bare].map(shown);
        let user = user_part.median * 100.0;
        text.push_str(&format!(
            "| {name} | {cpu} | {user:.0} % | {ratio} | {calls_by_name} | {} |\n",
            if *connections >= 1000 { format!("{memory:.0}") } else { "–".to_owned() }
        ));
    }
    text
}

/// What was asked for in one shape, and whether it was so.
fn shape_goals(shape: &Shape) -> Vec<(String, bool)> {
    let cell = |name: &str| shape.cells.iter().find(|cell| cell.name == name);
    let at = format!("{} connections, {} active", shape.connections, shape.active);
    let Some(ours) = cell("event, epoll") else { return Vec::new() };
    let (cpu, by_bare) = (ours.cpu_us.median, ours.by_bare.median);
    let mut goals =
        vec![(format!("{at}: at most 1.10 × the bare loop ({by_bare:.2})"), by_bare <= 1.10)];
    for (peer, from) in [("mio", 0), ("tokio", 100), ("libevent", 100)] {
        if let Some(theirs) = cell(peer).filter(|_| shape.connections >= from) {
            // Within a round: the machine changes its speed from one to the next.
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

/// What was asked for in all parts.
pub(super) fn goals(parts: &[Part]) -> Vec<(String, bool)> {
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

/// The page for the documentation.
pub(super) fn page(machine: &Machine, parts: &[Part]) -> String {
    let Machine { cores, kernel, perl, .. } = machine;
    let mut made: Vec<&str> = parts.iter().map(|part| part.made.as_str()).collect();
    made.sort_unstable();
    made.dedup();
    let made = made.join("; ");
    let mut text = format!(
        "# The loop, measured\n\n\
         Made by {made}: {cores} cores, Linux {kernel}, Perl {perl}. Do not edit it by hand.\n\n{METHOD}\n"
    );
    for part in parts {
        text.push_str(&part.text);
    }
    text.push_str(GOALS);
    text.push_str("\n\n");
    for (goal, met) in goals(parts) {
        text.push_str(&format!("- {}: {goal}\n", if met { "met" } else { "**missed**" }));
    }
    text
}

const METHOD: &str = "\
Each part is measured by itself (`--only PART`) and kept; this page is made of the parts that were kept last.

An echo of 64 bytes over TCP on one machine. Server and clients share one core, so that no part of the figures is the
luck of which core's cache a connection is in; a client that shares no core with the server makes the kernel's part of
each figure larger and the ratios smaller. Active connections all write, then all read. In each round every server is
started anew, connected, warmed up and measured once, in a random order that `--seed` repeats; shown are medians with
quartiles over the rounds, ratios within a round. CPU is that of the server alone (`schedstat`; the split by `stat`, in ticks of 10 ms, is coarse), system
calls are counted by strace in a window of their own, memory is anonymous resident memory after all connections have
spoken once, less that before the first.

`bare epoll` is `crates/event/examples/echo_bare.rs`: no timers, no limits, no queue; the least that is possible. mio
receives until there is no more, as its documentation asks for. tokio has one task a connection on its current-thread
runtime, and a buffer of 1 KiB on the stack, so that zeroing it is no part of the figures. libevent uses bufferevents. IO::Multiplex is measured up to 1000
connections, poll and select up to 1100.
";
