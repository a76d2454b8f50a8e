//! The page of `bench http`, made from what is stored. Pure.

use super::goals::{self, OURS};
use crate::bench::page::Machine;
use crate::bench::statistics::Quartiles;
use serde_json::Value;

/// The shape with so many connections.
pub(super) fn row(shapes: &Value, connections: u64) -> Option<&Value> {
    shapes.as_array()?.iter().find(|shape| shape["connections"].as_u64() == Some(connections))
}

fn samples(shape: &Value, subject: &str, what: &str) -> Option<Vec<f64>> {
    let samples = shape["subjects"].get(subject)?.as_array()?;
    Some(samples.iter().filter_map(|sample| sample[what].as_f64()).collect())
}

fn quartiles(shape: &Value, subject: &str, what: &str) -> Option<Quartiles> {
    samples(shape, subject, what).map(|samples| Quartiles::of(&samples))
}

pub(super) fn median_of(shape: &Value, subject: &str, what: &str) -> Option<f64> {
    quartiles(shape, subject, what).map(|quartiles| quartiles.median)
}

/// CPU time of one by that of another, round by round.
pub(super) fn ratio_of(shape: &Value, over: &str, under: &str) -> Option<Quartiles> {
    let (over, under) = (samples(shape, over, "cpu_us")?, samples(shape, under, "cpu_us")?);
    let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
    Some(Quartiles::of(&ratios))
}

fn names(of: &Value) -> Vec<String> {
    let order = ["bare relay", OURS, "HAProxy", "HAProxy, splice", "nginx"];
    let there = of["subjects"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let mut names: Vec<String> = there.collect();
    names.sort_by_key(|name| order.iter().position(|one| one == name).unwrap_or(order.len()));
    names
}

fn shown(of: Option<Quartiles>) -> String {
    of.map_or_else(
        || "–".to_owned(),
        |of| format!("{:.2} [{:.2}–{:.2}]", of.median, of.low, of.high),
    )
}

fn number(of: &Value) -> String {
    of.as_f64().map_or_else(|| "–".to_owned(), |of| format!("{of:.0}"))
}

/// What one part showed, as tables.
pub(super) fn part(name: &str, measured: &Value) -> String {
    match name {
        "paced" => paced(measured),
        "memory" => memory(measured),
        "calls" => calls(measured),
        "instructions" => instructions(measured),
        "shards" => measured.as_array().into_iter().flatten().map(shards).collect(),
        _ => measured.as_array().into_iter().flatten().map(shape).collect(),
    }
}

fn shape(shape: &Value) -> String {
    let (connections, size, active) = (&shape["connections"], &shape["size"], &shape["active"]);
    let active =
        if active == connections { String::new() } else { format!(", {active} of them active") };
    let mut text = format!(
        "### {size} bytes, {connections} connections{active}\n\n\
         | Proxy | CPU µs a request | of it user | × bare relay | × HAProxy | × nginx | requests/s |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for name in names(shape) {
        let sum = |what| samples(shape, &name, what).unwrap_or_default().iter().sum::<f64>();
        let (user, system) = (sum("user_ticks"), sum("system_ticks"));
        let [relay, haproxy, nginx] =
            ["bare relay", "HAProxy", "nginx"].map(|peer| shown(ratio_of(shape, &name, peer)));
        text.push_str(&format!(
            "| {name} | {} | {:.0} % | {relay} | {haproxy} | {nginx} | {:.0} |\n",
            shown(quartiles(shape, &name, "cpu_us")),
            100.0 * user / (user + system).max(1.0),
            median_of(shape, &name, "rate").unwrap_or(f64::NAN),
        ));
    }
    text + "\n"
}

fn shards(shape: &Value) -> String {
    let (connections, size) = (&shape["connections"], &shape["size"]);
    let mut text = format!(
        "### One shard and two, {size} bytes, {connections} connections\n\n\
         Both have all processors, and share them with the server and the clients.\n\n\
         | Roadstead on | CPU µs a request | of it user | × one shard | requests/s |\n|---|---|---|---|---|\n"
    );
    for name in ["one shard", "two shards"] {
        let sum = |what| samples(shape, name, what).unwrap_or_default().iter().sum::<f64>();
        let (user, system) = (sum("user_ticks"), sum("system_ticks"));
        text.push_str(&format!(
            "| {name} | {} | {:.0} % | {} | {:.0} |\n",
            shown(quartiles(shape, name, "cpu_us")),
            100.0 * user / (user + system).max(1.0),
            shown(ratio_of(shape, name, "one shard")),
            median_of(shape, name, "rate").unwrap_or(f64::NAN),
        ));
    }
    text + "\n"
}

fn paced(measured: &Value) -> String {
    let (rate, connections) = (&measured["rate"], &measured["connections"]);
    let mut text = format!(
        "### Latency at {rate} requests a second, 128 bytes, {connections} connections\n\n\
         | Proxy | p50 µs | p99 µs | sent too late, µs |\n|---|---|---|---|\n"
    );
    for name in names(measured) {
        let [p50, p99, late] =
            ["p50_us", "p99_us", "late_us"].map(|what| shown(quartiles(measured, &name, what)));
        text.push_str(&format!("| {name} | {p50} | {p99} | {late} |\n"));
    }
    text + "\n"
}

fn memory(measured: &Value) -> String {
    let mut text = format!(
        "### {} idle connections\n\n\
         | Proxy | bytes of user memory each | CPU µs in a second |\n|---|---|---|\n",
        measured["connections"]
    );
    for name in names(measured) {
        let of = &measured["subjects"][&name];
        text.push_str(&format!(
            "| {name} | {} | {} |\n",
            number(&of["bytes"]),
            number(&of["idle_us"])
        ));
    }
    text + "\n"
}

fn calls(measured: &Value) -> String {
    let mut text = String::from(
        "### System calls a request, 64 connections\n\n| Proxy | bytes | calls |\n|---|---|---|\n",
    );
    for size in ["128", "16384", "1048576"] {
        for (name, of) in measured[size].as_object().into_iter().flatten() {
            let shown = of["shown"].as_str().unwrap_or_default();
            text.push_str(&format!("| {name} | {size} | {shown} |\n"));
        }
    }
    text + "\n"
}

fn instructions(measured: &Value) -> String {
    let mut text = String::from(
        "### Outside the kernel, 128 bytes\n\n\
         | Proxy | instructions a request | allocations a request |\n|---|---|---|\n",
    );
    for name in names(measured) {
        let of = &measured["subjects"][&name];
        let allocations = of["allocations"].as_f64().unwrap_or(f64::NAN);
        text.push_str(&format!(
            "| {name} | {} | {allocations:.3} |\n",
            number(&of["instructions"])
        ));
    }
    text + "\n"
}

/// The page for the documentation.
pub(super) fn page(machine: &Machine, stored: &[(&str, Value)]) -> String {
    let Machine { cores, kernel, date, .. } = machine;
    let mut text = format!(
        "# HTTP/1 through proxies, measured\n\n\
         Made by `cargo xtask bench http` on {date}: {cores} cores, Linux {kernel}. Do not edit it by hand.\n\n\
         Keep-alive over loopback. Each proxy is one process with one core for itself; its server and its clients share \
         the other. All proxies are started and warm; in each round every one has one window, in turn. Shown are medians \
         with quartiles over the rounds, and ratios within a round: absolute numbers are worth ±30 %. CPU is that of the \
         proxy alone (`schedstat`; the split by `stat`, in ticks of 10 ms over all windows). System calls are counted by \
         strace in windows of their own, instructions and calls of allocators by callgrind (4,500 requests less 500). \
         Memory is anonymous resident memory after each connection was answered once, less that before the first.\n\n\
         `bare relay` (`xtask/examples/http_relay.rs`) passes bytes and reads none of them, with a connection to the server \
         for each client: the limit. HAProxy and nginx are Debian's; their configurations stand in `xtask/peers`. `HAProxy, \
         splice` is the same with `option splice-response`.\n\n"
    );
    for (name, measured) in stored {
        text.push_str(&part(name, measured));
    }
    text.push_str("## What was asked for\n\n");
    for goals::Goal { text: goal, met } in goals::all(stored) {
        text.push_str(&format!("- {}: {goal}\n", if met { "met" } else { "**missed**" }));
    }
    text
}
