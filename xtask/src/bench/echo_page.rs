//! The page of `bench loop`: tables of what was measured, and what was asked for.

use super::echo::{Cell, Shape};
use super::page::Machine;
use super::statistics::Quartiles;

fn shown(of: Quartiles) -> String {
    format!("{:.2} [{:.2}–{:.2}]", of.median, of.low, of.high)
}

/// The table of one shape.
pub(super) fn table(shape: &Shape) -> String {
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

/// What was asked for, and whether it was so.
pub(super) fn goals(shapes: &[Shape]) -> Vec<(String, bool)> {
    let cell = |shape: &Shape, name: &str| {
        shape
            .cells
            .iter()
            .find(|cell| cell.name == name)
            .map(|cell| (cell.cpu_us.median, cell.by_bare.median, cell.calls, cell.memory))
    };
    let mut goals = Vec::new();
    for shape in shapes {
        let at = format!("{} connections, {} active", shape.connections, shape.active);
        let Some((cpu, by_bare, ..)) = cell(shape, "event, epoll") else { continue };
        goals.push((format!("{at}: at most 1.10 × the bare loop ({by_bare:.2})"), by_bare <= 1.10));
        for (peer, from) in [("mio", 0), ("libevent", 100)] {
            if let Some((theirs, ..)) = cell(shape, peer).filter(|_| shape.connections >= from) {
                let text = format!("{at}: not above {peer} ({cpu:.2} and {theirs:.2} µs)");
                goals.push((text, cpu <= theirs));
            }
        }
    }
    let of = |connections, active| {
        let shape = shapes.iter().find(|it| (it.connections, it.active) == (connections, active));
        shape.and_then(|shape| cell(shape, "event, epoll"))
    };
    if let (Some((.., few, _)), Some((.., many, _))) = (of(100, 100), of(9100, 100)) {
        let text = format!("system calls a request with 0 and 9000 idle ({few:.3} and {many:.3})");
        goals.push((text, (few - many).abs() <= 0.02 * few));
    }
    if let Some((.., memory)) = of(9500, 9500) {
        let text = format!("an idle connection costs at most 256 bytes ({memory:.0})");
        goals.push((text, memory <= 256.0));
    }
    goals
}

/// The page for the documentation.
pub(super) fn page(command: &str, machine: &Machine, shapes: &[Shape]) -> String {
    let Machine { cores, kernel, date, perl } = machine;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').nth(1).unwrap_or("unknown");
    let mut text = format!(
        "# The loop, measured\n\n\
         Made by `{command}` on {date}: {cores} cores, Linux {kernel}, Perl {perl}. Do not edit it by hand.\n\n\
         The load average of five minutes was {load} at the end: what it is above 2 other work took from the same cores, and \
         the split between user and system, which the kernel counts in ticks of 10 ms, is coarse.\n\n\
         An echo of 64 bytes over TCP on one machine. Active connections all write, then all read. In each round \
         every server is started anew, connected, warmed up and measured once, in turn; shown are medians with \
         quartiles over the rounds, ratios within a round. CPU is that of the server alone (`schedstat`; the split \
         by `stat`), system calls are counted by strace in a window of their own, memory is anonymous resident \
         memory after all connections have spoken once, less that before the first.\n\n\
         `bare epoll` is `crates/event/examples/echo_bare.rs`: no timers, no limits, no queue; the least that is \
         possible. mio receives until there is no more, as its documentation asks for. libevent uses bufferevents. IO::Multiplex is measured up to 1000 connections, poll \
         and select up to 1100.\n\n"
    );
    for shape in shapes {
        text.push_str(&table(shape));
        text.push('\n');
    }
    text.push_str("## What was asked for\n\n");
    for (goal, met) in goals(shapes) {
        text.push_str(&format!("- {}: {goal}\n", if met { "met" } else { "**missed**" }));
    }
    text
}
