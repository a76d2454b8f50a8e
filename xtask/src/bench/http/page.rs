//! Generates the page of `bench http` from the stored parts. Pure.

use super::goals::{self, OURS, PEERS, RELAY};
use super::subject::COPYING;
use crate::bench::driver::Whole;
use crate::bench::goals::word;
use crate::bench::page::{Template, row};
use crate::bench::statistics::Quartiles;
use crate::bench::trial::Trial;
use serde_json::Value;

pub(super) const TEXT: Template = Template(include_str!("../../../pages/http.md"));

/// A subject does not keep its server connections if it opens more than it has clients and more than one per this
/// number of requests.
const KEPT_FROM: f64 = 1000.0;
/// If other programs used more than this share of the processors, they may have changed the figures.
const FOREIGN_MAX: f64 = 0.05;

fn number(of: &Value) -> String {
    of.as_f64().map_or_else(|| "–".to_owned(), |of| format!("{of:.0}"))
}

/// Returns a line for each subject.
fn rows<'a>(names: impl Iterator<Item = &'a str>, line: impl Fn(&str) -> String) -> String {
    let order = [RELAY, OURS, "HAProxy", COPYING, "nginx"];
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| order.iter().position(|one| one == name).unwrap_or(order.len()));
    names.into_iter().map(line).collect()
}

/// Returns the names of subjects that were measured once.
fn names(of: &Value) -> impl Iterator<Item = &str> {
    of.as_object().into_iter().flatten().map(|(name, _)| name.as_str())
}

/// Returns the tables of one part.
pub(super) fn part(name: &str, measured: &Value) -> String {
    let shapes = measured.as_array().into_iter().flatten();
    match name {
        "paced" => paced(measured),
        "memory" => memory(measured),
        "calls" => calls(measured),
        "instructions" => instructions(measured),
        "shards" => shapes.map(shards).collect::<Vec<_>>().join("\n"),
        _ => shapes.map(shape).collect::<Vec<_>>().join("\n"),
    }
}

/// Returns how a table was measured.
fn made(of: &Value) -> String {
    let made = &of["made"];
    let foreign = Some(foreign(of))
        .filter(|foreign| !foreign.is_nan())
        .map(|foreign| format!(" Other programs used {:.1} % of the processors.", foreign * 100.0));
    TEXT.fill(
        "made",
        &[
            ("rounds", &made["rounds"]),
            ("window_ms", &made["window_ms"]),
            ("seed", &made["seed"]),
            ("made", &made["date"].as_str().unwrap_or_default()),
            ("foreign", &foreign.unwrap_or_default()),
        ],
    )
}

/// Returns the median share of the processors that other programs used in the windows of a shape.
fn foreign(shape: &Value) -> f64 {
    let trial = Trial::read(&shape["subjects"]);
    let all = trial.names().flat_map(|name| trial.samples(name, "foreign"));
    Quartiles::of(&all.collect::<Vec<_>>()).median
}

/// Returns a sentence for each subject that did not keep its server connections in a shape.
fn reconnecting_in(shape: &Value) -> Vec<String> {
    let trial = Trial::read(&shape["subjects"]);
    let each = trial.names().filter_map(|name| {
        let [requests, connects] = ["requests", "connects"].map(|what| trial.sum(name, what));
        let kept_max = (requests / KEPT_FROM).max(shape["connections"].as_f64().unwrap_or(0.0));
        (connects > kept_max).then(|| {
            format!(
                "{name} does not keep its server connections here: it opened {connects:.0} in {requests:.0} requests"
            )
        })
    });
    each.collect()
}

/// Returns these sentences for all shapes.
fn reconnecting(parts: &[(&str, Value)]) -> Vec<String> {
    let shapes = parts.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let each = shapes.flat_map(|shape| {
        let at = format!("{} bytes, {} connections", shape["size"], shape["connections"]);
        reconnecting_in(shape).into_iter().map(move |text| format!("{at}: {text}"))
    });
    each.collect()
}

/// Returns CPU time per request, its part in user space, the share of the core, requests per second, and server
/// connections per 1,000 requests.
fn cells(trial: &Trial, name: &str) -> [String; 5] {
    let sum = |what| trial.sum(name, what);
    let (user, system) = (sum("user_ticks"), sum("system_ticks"));
    let (cpu, rate) = (trial.of(name, "cpu_us"), trial.median(name, "rate"));
    [
        cpu.digits(2),
        format!("{:.0} %", 100.0 * user / (user + system).max(1.0)),
        format!("{:.0} %", cpu.median * rate / 1e4),
        format!("{rate:.0}"),
        format!("{:.2}", 1000.0 * sum("connects") / sum("requests").max(1.0)),
    ]
}

fn shape(shape: &Value) -> String {
    let (connections, active) = (&shape["connections"], &shape["active"]);
    let active =
        if active == connections { String::new() } else { format!(", {active} of them active") };
    let trial = Trial::read(&shape["subjects"]);
    let rows = rows(trial.names(), |name| {
        let [cpu, user, core, rate, connects] = cells(&trial, name);
        let [relay, haproxy, nginx] =
            [RELAY, PEERS[0], PEERS[1]].map(|peer| trial.ratio("cpu_us", name, peer).digits(2));
        row(&[&name, &cpu, &user, &relay, &haproxy, &nginx, &core, &rate, &connects])
    });
    let reconnecting = reconnecting_in(shape).into_iter().map(|sentence| {
        format!("**{sentence}.** Its figures are not those of a proxy with kept connections.\n\n")
    });
    TEXT.fill(
        "shape",
        &[
            ("size", &shape["size"]),
            ("connections", connections),
            ("plural", &if connections == 1 { "" } else { "s" }),
            ("active", &active),
            ("rows", &rows),
            ("reconnecting", &reconnecting.collect::<String>()),
            ("made", &made(shape)),
        ],
    )
}

fn shards(shape: &Value) -> String {
    let trial = Trial::read(&shape["subjects"]);
    let rows = ["one shard", "two shards"].map(|name| {
        let [cpu, user, _, rate, _] = cells(&trial, name);
        row(&[&name, &cpu, &user, &trial.ratio("cpu_us", name, "one shard").digits(2), &rate])
    });
    TEXT.fill(
        "shards",
        &[
            ("size", &shape["size"]),
            ("connections", &shape["connections"]),
            ("rows", &rows.concat()),
            ("made", &made(shape)),
        ],
    )
}

fn paced(measured: &Value) -> String {
    let trial = Trial::read(&measured["subjects"]);
    let rows = rows(trial.names(), |name| {
        let [p50, p99, late] =
            ["p50_us", "p99_us", "late_us"].map(|what| trial.of(name, what).digits(0));
        row(&[&name, &p50, &p99, &late])
    });
    TEXT.fill(
        "paced",
        &[
            ("rate", &number(&measured["rate"])),
            ("connections", &measured["connections"]),
            ("rows", &rows),
            ("made", &made(measured)),
        ],
    )
}

fn memory(measured: &Value) -> String {
    let subjects = &measured["subjects"];
    let rows = rows(names(subjects), |name| {
        let of = &subjects[name];
        row(&[&name, &number(&of["bytes"]), &number(&of["idle_us"])])
    });
    TEXT.fill("memory", &[("connections", &measured["connections"]), ("rows", &rows)])
}

const SIZES: [&str; 3] = ["128", "16384", "1048576"];

fn calls(measured: &Value) -> String {
    let mut rows = String::new();
    for size in SIZES {
        for (name, of) in measured[size].as_object().into_iter().flatten() {
            rows += &row(&[name, &size, &of["shown"].as_str().unwrap_or_default()]);
        }
    }
    TEXT.fill("calls", &[("rows", &rows)])
}

fn instructions(measured: &Value) -> String {
    let of_size = |size: &str| {
        let subjects = &measured["sizes"][size]["subjects"];
        let count = |name: &str| subjects[name]["instructions"].as_f64();
        rows(names(subjects), |name| {
            let [haproxy, nginx] = PEERS.map(|peer| {
                let both = count(name).zip(count(peer));
                both.map_or_else(|| "–".to_owned(), |(one, other)| format!("{:.2}", one / other))
            });
            let of = &subjects[name];
            let allocations = format!("{:.4}", of["allocations"].as_f64().unwrap_or(f64::NAN));
            let instructions = number(&of["instructions"]);
            row(&[&name, &size, &instructions, &haproxy, &nginx, &allocations])
        })
    };
    let rows = SIZES.map(of_size).concat();
    TEXT.fill("instructions", &[("connections", &measured["connections"]), ("rows", &rows)])
}

/// Returns what is on the page besides the parts, with the versions of HAProxy and nginx. A proxy that does not keep its
/// server connections fails the benchmark like a missed goal.
pub(super) fn whole([haproxy, nginx]: &[String; 2], parts: &[(&str, Value)]) -> Whole {
    let shapes = parts.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let most = shapes.map(foreign).fold(0.0, f64::max);
    let percent = format!("{:.0}", most * 100.0);
    let shared = (most > FOREIGN_MAX).then(|| TEXT.fill("shared", &[("foreign", &percent)]));
    let mut goals = goals::all(parts);
    let rows = goals.iter().map(|(text, measured, met)| row(&[text, measured, &word(*met)]));
    let values = vec![
        ("haproxy", haproxy.clone()),
        ("nginx", nginx.clone()),
        ("shared", shared.unwrap_or_default()),
        ("goals", rows.collect()),
    ];
    let lost = reconnecting(parts).into_iter();
    goals.extend(lost.map(|text| (text, "more than it keeps".to_owned(), false)));
    Whole { goals, values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(connects: u64, foreign: f64) -> Vec<(&'static str, Value)> {
        let of = |name: &str, connects: u64| {
            json!([name, [{ "cpu_us": 10.0, "user_ticks": 1, "system_ticks": 3, "rate": 50_000.0,
                            "requests": 50_000.0, "connects": connects, "foreign": foreign }]])
        };
        let made = json!({ "rounds": 1, "window_ms": 1000, "seed": 42, "date": "2026-01-02" });
        let subjects = json!([of("HAProxy", connects), of("nginx", 50), of(OURS, 0)]);
        let shape = json!({ "connections": 60, "active": 60, "size": 128, "subjects": subjects,
                            "made": made });
        vec![("9000", json!([shape]))]
    }

    fn text_of(stored: &[(&str, Value)]) -> String {
        stored.iter().map(|(name, values)| part(name, values)).collect()
    }

    #[test]
    fn a_peer_that_reconnects_is_named_on_the_page() {
        let kept = stored(50, 0.0);
        assert_eq!(reconnecting(&kept), Vec::<String>::new());
        assert!(!text_of(&kept).contains("**nginx does not"), "one in 1,000 is kept");
        let filled = stored(60, 0.0);
        assert_eq!(reconnecting(&filled), Vec::<String>::new(), "a pool that fills once is kept");
        assert_eq!(reconnecting(&stored(61, 0.0)).len(), 1);
        let lost = stored(40_000, 0.0);
        assert_eq!(reconnecting(&lost).len(), 1, "{:?}", reconnecting(&lost));
        let text = text_of(&lost);
        assert!(text.contains("**HAProxy does not keep its server connections here"), "{text}");
        assert!(text.contains("| 800.00 |"), "{text}");
    }

    #[test]
    fn the_seed_and_a_shared_machine_are_on_the_page() {
        let text = text_of(&stored(0, 0.2));
        assert!(text.contains("order by seed 42, 2026-01-02"), "{text}");
        let shared = |foreign| {
            let whole = whole(&["HAProxy 2", "nginx 1"].map(str::to_owned), &stored(0, foreign));
            whole.values.iter().any(|(_, value)| value.contains("**The machine was shared"))
        };
        assert!(shared(0.2) && !shared(0.01));
    }
}
