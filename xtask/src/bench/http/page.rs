//! Generates the page of `bench http` from the stored parts. Pure.

use super::figures::{OURS, median_of, quartiles, ratio_of, samples};
use super::goals;
use super::subject::COPYING;
use crate::bench::goals::word;
use crate::bench::statistics::Quartiles;
use crate::bench::template::{Template, row};
use serde_json::Value;

const TEXT: Template = Template(include_str!("../../../pages/http.md"));

/// A subject does not keep its server connections if it opens more than it has clients and more than one per this
/// number of requests.
const KEPT_FROM: f64 = 1000.0;
/// If other programs used more than this share of the processors, they may have changed the figures.
const FOREIGN_MAX: f64 = 0.05;

fn names(of: &Value) -> Vec<String> {
    let order = ["bare relay", OURS, "HAProxy", COPYING, "nginx"];
    let there = of["subjects"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let mut names: Vec<String> = there.collect();
    names.sort_by_key(|name| order.iter().position(|one| one == name).unwrap_or(order.len()));
    names
}

fn shown(of: Option<Quartiles>, digits: usize) -> String {
    of.map_or_else(|| "–".to_owned(), |of| of.digits(digits))
}

fn number(of: &Value) -> String {
    of.as_f64().map_or_else(|| "–".to_owned(), |of| format!("{of:.0}"))
}

/// Returns a line for each subject.
fn rows(of: &Value, line: impl Fn(&str) -> String) -> String {
    names(of).iter().map(|name| line(name)).collect()
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
    let of = |name| samples(shape, name, "foreign").unwrap_or_default();
    let all: Vec<f64> = names(shape).iter().flat_map(|name| of(name)).collect();
    Quartiles::of(&all).median
}

/// Returns the requests, and the server connections that a subject opened, in all windows of a shape.
fn requests_and_connects(shape: &Value, name: &str) -> (f64, f64) {
    let sum = |what| samples(shape, name, what).unwrap_or_default().iter().sum::<f64>();
    (sum("requests"), sum("connects"))
}

/// Returns a sentence for each subject that did not keep its server connections in a shape.
fn reconnecting_in(shape: &Value) -> Vec<String> {
    let each = names(shape).into_iter().filter_map(|name| {
        let (requests, connects) = requests_and_connects(shape, &name);
        let kept_max = (requests / KEPT_FROM).max(shape["connections"].as_f64().unwrap_or(0.0));
        (connects > kept_max).then(|| {
            format!(
                "{name} does not keep its server connections here: it opened {connects:.0} in {requests:.0} requests"
            )
        })
    });
    each.collect()
}

/// Returns these sentences for all stored shapes.
pub(super) fn reconnecting(stored: &[(&str, Value)]) -> Vec<String> {
    let shapes = stored.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let each = shapes.flat_map(|shape| {
        let at = format!("{} bytes, {} connections", shape["size"], shape["connections"]);
        reconnecting_in(shape).into_iter().map(move |text| format!("{at}: {text}"))
    });
    each.collect()
}

/// Returns CPU time per request, its part in user space, the share of the core, requests per second, and server
/// connections per 1,000 requests.
fn cells(shape: &Value, name: &str) -> [String; 5] {
    let sum = |what| samples(shape, name, what).unwrap_or_default().iter().sum::<f64>();
    let (user, system) = (sum("user_ticks"), sum("system_ticks"));
    let rate = median_of(shape, name, "rate").unwrap_or(f64::NAN);
    let cpu = quartiles(shape, name, "cpu_us");
    let (requests, connects) = requests_and_connects(shape, name);
    [
        shown(cpu, 2),
        format!("{:.0} %", 100.0 * user / (user + system).max(1.0)),
        format!("{:.0} %", cpu.map_or(f64::NAN, |cpu| cpu.median) * rate / 1e4),
        format!("{rate:.0}"),
        format!("{:.2}", 1000.0 * connects / requests.max(1.0)),
    ]
}

fn shape(shape: &Value) -> String {
    let (connections, active) = (&shape["connections"], &shape["active"]);
    let active =
        if active == connections { String::new() } else { format!(", {active} of them active") };
    let rows = rows(shape, |name| {
        let [cpu, user, core, rate, connects] = cells(shape, name);
        let [relay, haproxy, nginx] =
            ["bare relay", "HAProxy", "nginx"].map(|peer| shown(ratio_of(shape, name, peer), 2));
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
    let rows = ["one shard", "two shards"].map(|name| {
        let [cpu, user, _, rate, _] = cells(shape, name);
        row(&[&name, &cpu, &user, &shown(ratio_of(shape, name, "one shard"), 2), &rate])
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
    let rows = rows(measured, |name| {
        let [p50, p99, late] =
            ["p50_us", "p99_us", "late_us"].map(|what| shown(quartiles(measured, name, what), 0));
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
    let rows = rows(measured, |name| {
        let of = &measured["subjects"][name];
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
        let of_size = &measured["sizes"][size];
        let count = |name: &str| of_size["subjects"][name]["instructions"].as_f64();
        rows(of_size, |name| {
            let [haproxy, nginx] = ["HAProxy", "nginx"].map(|peer| {
                let both = count(name).zip(count(peer));
                both.map_or_else(|| "–".to_owned(), |(one, other)| format!("{:.2}", one / other))
            });
            let of = &of_size["subjects"][name];
            let allocations = format!("{:.4}", of["allocations"].as_f64().unwrap_or(f64::NAN));
            let instructions = number(&of["instructions"]);
            row(&[&name, &size, &instructions, &haproxy, &nginx, &allocations])
        })
    };
    let rows = SIZES.map(of_size).concat();
    TEXT.fill("instructions", &[("connections", &measured["connections"]), ("rows", &rows)])
}

/// Returns the page for the documentation, with the versions of HAProxy and nginx.
pub(super) fn page([haproxy, nginx]: &[String; 2], stored: &[(&str, Value)]) -> String {
    let shapes = stored.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let most = shapes.map(foreign).fold(0.0, f64::max);
    let percent = format!("{:.0}", most * 100.0);
    let shared = (most > FOREIGN_MAX).then(|| TEXT.fill("shared", &[("foreign", &percent)]));
    let goals = goals::all(stored);
    let goals = goals.iter().map(|goal| row(&[&goal.text, &goal.measured, &word(goal.met)]));
    let parts: Vec<String> = stored.iter().map(|(name, measured)| part(name, measured)).collect();
    TEXT.fill(
        "page",
        &[
            ("haproxy", haproxy),
            ("nginx", nginx),
            ("shared", &shared.unwrap_or_default()),
            ("goals", &goals.collect::<String>()),
            ("parts", &parts.join("\n")),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(connects: u64, foreign: f64) -> Vec<(&'static str, Value)> {
        let of = |connects: u64| {
            json!([{ "cpu_us": 10.0, "user_ticks": 1, "system_ticks": 3, "rate": 50_000.0,
                     "requests": 50_000.0, "connects": connects, "foreign": foreign }])
        };
        let made = json!({ "rounds": 1, "window_ms": 1000, "seed": 42, "date": "2026-01-02" });
        let subjects = json!({ "HAProxy": of(connects), "nginx": of(50), OURS: of(0) });
        let shape = json!({ "connections": 60, "active": 60, "size": 128, "subjects": subjects,
                            "made": made });
        vec![("9000", json!([shape]))]
    }

    fn page_of(stored: &[(&str, Value)]) -> String {
        page(&["HAProxy 2", "nginx 1"].map(str::to_owned), stored)
    }

    #[test]
    fn a_peer_that_reconnects_is_named_on_the_page() {
        let kept = stored(50, 0.0);
        assert_eq!(reconnecting(&kept), Vec::<String>::new());
        assert!(!page_of(&kept).contains("**nginx does not"), "one in 1,000 is kept");
        let filled = stored(60, 0.0);
        assert_eq!(reconnecting(&filled), Vec::<String>::new(), "a pool that fills once is kept");
        assert_eq!(reconnecting(&stored(61, 0.0)).len(), 1);
        let lost = stored(40_000, 0.0);
        assert_eq!(reconnecting(&lost).len(), 1, "{:?}", reconnecting(&lost));
        let page = page_of(&lost);
        assert!(page.contains("**HAProxy does not keep its server connections here"), "{page}");
        assert!(page.contains("| 800.00 |"), "{page}");
    }

    #[test]
    fn the_seed_and_a_shared_machine_are_on_the_page() {
        let page = page_of(&stored(0, 0.2));
        assert!(page.contains("order by seed 42, 2026-01-02"), "{page}");
        assert!(page.contains("**The machine was shared"), "{page}");
        assert!(!page_of(&stored(0, 0.01)).contains("The machine was shared"));
    }
}
