//! The page of `bench http`, made from the stored parts. Pure.

use super::figures::{OURS, median_of, quartiles, ratio_of, samples};
use super::goals;
use super::subject::COPYING;
use crate::bench::page::Machine;
use crate::bench::statistics::Quartiles;
use serde_json::Value;

/// A subject that opens more server connections than one in so many requests, and more than it has clients, does
/// not keep them.
const KEPT_FROM: f64 = 1000.0;
/// Above this part of the processors, other programs may have changed the figures.
const FOREIGN_MAX: f64 = 0.05;

fn names(of: &Value) -> Vec<String> {
    let order = ["bare relay", OURS, "HAProxy", COPYING, "nginx"];
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

/// The tables of one part.
pub(super) fn part(name: &str, measured: &Value) -> String {
    let shapes = measured.as_array().into_iter().flatten();
    match name {
        "paced" => paced(measured),
        "memory" => memory(measured),
        "calls" => calls(measured),
        "instructions" => instructions(measured),
        "shards" => shapes.map(shards).collect(),
        _ => shapes.map(shape).collect(),
    }
}

/// How a table was measured.
fn made(of: &Value) -> String {
    let made = &of["made"];
    let foreign = foreign(of);
    let foreign = if foreign.is_nan() {
        String::new()
    } else {
        format!(" Other programs used {:.1} % of the processors.", foreign * 100.0)
    };
    format!(
        "{} rounds of {} ms, order by seed {}, {}.{foreign}\n\n",
        made["rounds"],
        made["window_ms"],
        made["seed"],
        made["date"].as_str().unwrap_or_default()
    )
}

/// The median part of the processors that other programs used in the windows of a shape.
fn foreign(shape: &Value) -> f64 {
    let of = |name| samples(shape, name, "foreign").unwrap_or_default();
    let all: Vec<f64> = names(shape).iter().flat_map(|name| of(name)).collect();
    Quartiles::of(&all).median
}

/// The requests and the server connections that a subject opened, in all windows of a shape.
fn requests_and_connects(shape: &Value, name: &str) -> (f64, f64) {
    let sum = |what| samples(shape, name, what).unwrap_or_default().iter().sum::<f64>();
    (sum("requests"), sum("connects"))
}

/// A sentence for each subject that did not keep its server connections in a shape.
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

/// The same for all stored shapes.
pub(super) fn reconnecting(stored: &[(&str, Value)]) -> Vec<String> {
    let shapes = stored.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let each = shapes.flat_map(|shape| {
        let at = format!("{} bytes, {} connections", shape["size"], shape["connections"]);
        reconnecting_in(shape).into_iter().map(move |text| format!("{at}: {text}"))
    });
    each.collect()
}

/// CPU time per request, of it outside the kernel, the part of its core, requests per second, and server
/// connections per 1,000 requests.
fn cells(shape: &Value, name: &str) -> [String; 5] {
    let sum = |what| samples(shape, name, what).unwrap_or_default().iter().sum::<f64>();
    let (user, system) = (sum("user_ticks"), sum("system_ticks"));
    let rate = median_of(shape, name, "rate").unwrap_or(f64::NAN);
    let cpu = quartiles(shape, name, "cpu_us");
    let (requests, connects) = requests_and_connects(shape, name);
    [
        shown(cpu),
        format!("{:.0} %", 100.0 * user / (user + system).max(1.0)),
        format!("{:.0} %", cpu.map_or(f64::NAN, |cpu| cpu.median) * rate / 1e4),
        format!("{rate:.0}"),
        format!("{:.2}", 1000.0 * connects / requests.max(1.0)),
    ]
}

fn shape(shape: &Value) -> String {
    let (connections, size, active) = (&shape["connections"], &shape["size"], &shape["active"]);
    let active =
        if active == connections { String::new() } else { format!(", {active} of them active") };
    let plural = if connections == 1 { "" } else { "s" };
    let mut text = format!(
        "### {size} bytes, {connections} connection{plural}{active}\n\n\
         | Proxy | CPU µs per request | user | × bare relay | × HAProxy | × nginx | of its core | requests/s | server connections per 1,000 requests |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for name in names(shape) {
        let [relay, haproxy, nginx] =
            ["bare relay", "HAProxy", "nginx"].map(|peer| shown(ratio_of(shape, &name, peer)));
        let [cpu, user, core, rate, connects] = cells(shape, &name);
        text.push_str(&format!(
            "| {name} | {cpu} | {user} | {relay} | {haproxy} | {nginx} | {core} | {rate} | {connects} |\n"
        ));
    }
    text.push('\n');
    for sentence in reconnecting_in(shape) {
        text.push_str(&format!(
            "**{sentence}.** Its figures are not those of a proxy with kept connections.\n\n"
        ));
    }
    text + &made(shape)
}

fn shards(shape: &Value) -> String {
    let (connections, size) = (&shape["connections"], &shape["size"]);
    let mut text = format!(
        "### One shard and two, {size} bytes, {connections} connections\n\n\
         Both may use all processors, which they share with the server and the clients.\n\n\
         | Roadstead | CPU µs per request | user | × one shard | requests/s |\n|---|---|---|---|---|\n"
    );
    for name in ["one shard", "two shards"] {
        let [cpu, user, _, rate, _] = cells(shape, name);
        let ratio = shown(ratio_of(shape, name, "one shard"));
        text.push_str(&format!("| {name} | {cpu} | {user} | {ratio} | {rate} |\n"));
    }
    text + "\n" + &made(shape)
}

fn paced(measured: &Value) -> String {
    let connections = &measured["connections"];
    let rate = number(&measured["rate"]);
    let mut text = format!(
        "### Latency at {rate} requests per second, 128 bytes, {connections} connections\n\n\
         The rate is half of what the slowest of them reaches. Latency counts from the time at which a request \
         was due; \"sent late\" is by how much the median request was sent after that.\n\n\
         | Proxy | median µs | 99th percentile µs | sent late, µs |\n|---|---|---|---|\n"
    );
    for name in names(measured) {
        let [p50, p99, late] = ["p50_us", "p99_us", "late_us"].map(|what| {
            quartiles(measured, &name, what).map_or_else(
                || "–".to_owned(),
                |of| format!("{:.0} [{:.0}–{:.0}]", of.median, of.low, of.high),
            )
        });
        text.push_str(&format!("| {name} | {p50} | {p99} | {late} |\n"));
    }
    text + "\n" + &made(measured)
}

fn memory(measured: &Value) -> String {
    let mut text = format!(
        "### {} idle connections\n\n\
         | Proxy | bytes of user memory per connection | CPU µs per second |\n|---|---|---|\n",
        measured["connections"]
    );
    for name in names(measured) {
        let of = &measured["subjects"][&name];
        let (bytes, idle) = (number(&of["bytes"]), number(&of["idle_us"]));
        text.push_str(&format!("| {name} | {bytes} | {idle} |\n"));
    }
    text + "\n"
}

fn calls(measured: &Value) -> String {
    let mut text = String::from(
        "### System calls per request, 64 connections\n\n| Proxy | bytes | calls |\n|---|---|---|\n",
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
    let mut text = format!(
        "### Instructions and allocations outside the kernel, {} connections\n\n\
         | Proxy | bytes | instructions per request | × HAProxy | × nginx | allocations per request |\n|---|---|---|---|---|---|\n",
        measured["connections"]
    );
    for size in ["128", "16384", "1048576"] {
        let of_size = &measured["sizes"][size];
        let count = |name: &str| of_size["subjects"][name]["instructions"].as_f64();
        for name in names(of_size) {
            let [haproxy, nginx] = ["HAProxy", "nginx"].map(|peer| {
                let both = count(&name).zip(count(peer));
                both.map_or_else(|| "–".to_owned(), |(one, other)| format!("{:.2}", one / other))
            });
            let of = &of_size["subjects"][&name];
            let instructions = number(&of["instructions"]);
            let allocations = of["allocations"].as_f64().unwrap_or(f64::NAN);
            text.push_str(&format!(
                "| {name} | {size} | {instructions} | {haproxy} | {nginx} | {allocations:.4} |\n"
            ));
        }
    }
    text + "\n"
}

const METHOD: &str = "\
## Method

All proxies run at the same time, warm, on loopback without TLS. Clients, proxy and server are separate processes: all \
processes of the proxy are pinned to core 0; the server (`xtask/examples/http_origin.rs`) and the clients \
(`xtask/examples/http_load.rs`) share core 1. Each client keeps one request in flight on a persistent connection. The load is \
closed: a proxy that needs less CPU gets more requests, up to what core 1 can send and answer. The column *of its core* shows how \
busy each proxy was.

*Rounds.* In each round every proxy has one window, while the others are idle. The order within a round is random, drawn from \
the seed under each table (`--seed` repeats it). Figures are medians with quartiles over the rounds; ratios are formed within a \
round, so that a change of the machine's speed between rounds does not count. Absolute figures depend on the machine and vary \
between runs; compare the ratios.

*CPU* is the run time of all processes of a product in nanoseconds (`/proc/PID/task/*/schedstat`): Roadstead's daemon with its \
supervisor, HAProxy's master and worker, nginx's master and worker. Part of it is kernel work for the peer's side of a loopback \
connection, for all proxies alike. *user* is the part outside the kernel, from `/proc/PID/stat`. *Other programs* is the CPU time of \
everything that does not belong to the measurement, as a part of all processors.

*Server connections.* The server counts the connections it accepts. A proxy that opens more than one per 1,000 requests within \
the windows, and more than it has clients, does not keep its connections; the page then says so below the table and the benchmark \
fails.

*Memory* is anonymous resident memory of all processes after each of the connections was answered once, minus that before; one \
client was served before that. *System calls* are counted by strace over 8,000 requests (500 of 1 MiB) in runs of their own. \
*Instructions and allocations* are counted by callgrind: a long run minus a short one (4,500 and 500 requests; 2,500 and 500 of \
16 KiB; 450 and 50 of 1 MiB), with glibc's `rep movsb` off, of which callgrind would count every byte. Under callgrind every product is one process, because valgrind cannot follow their masters and \
supervisors: HAProxy with `-db`, nginx with `master_process off`, and Roadstead's data plane in \
`crates/roadstead/examples/serve_file.rs`, which has no supervisor.

*Configuration.* `xtask/peers` has all files. Each product has one worker with one thread, writes no log, and adds \
`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` to each request. All keep idle server connections for 300 s. HAProxy has \
`http-reuse always`, `tune.pool-low-fd-ratio 100` and `tune.pool-high-fd-ratio 100` (otherwise it keeps no idle server connection \
above a quarter of its descriptors), `option splice-response`, and pipes of 256 KiB as Roadstead. `HAProxy without splice` is the same \
without that option. nginx has no splice between sockets. HAProxy and nginx are Debian's packages.

*The bare relay* (`xtask/examples/http_relay.rs`) copies bytes without parsing them, with a server connection for each client. It \
is the lower limit for small replies only: it adds no headers and does not splice.

";

/// The versions of the peers, for the page.
pub(super) struct Versions {
    pub(super) haproxy: String,
    pub(super) nginx: String,
}

/// The page for the documentation.
pub(super) fn page(machine: &Machine, versions: &Versions, stored: &[(&str, Value)]) -> String {
    let Machine { cores, kernel, date, .. } = machine;
    let Versions { haproxy, nginx } = versions;
    let mut text = format!(
        "# HTTP/1.1 through a reverse proxy: measurements\n\n\
         Generated by `cargo xtask bench http` on {date}. Do not edit. {cores} cores, Linux {kernel}, {haproxy}, {nginx}.\n\n\
         CPU time per request of Roadstead, HAProxy, nginx and a bare relay. Lower is better; a ratio below 1 means less CPU than \
         the product in the heading of the column.\n\n"
    );
    let shapes = stored.iter().flat_map(|(_, part)| part.as_array().into_iter().flatten());
    let most = shapes.map(foreign).fold(0.0, f64::max);
    if most > FOREIGN_MAX {
        text.push_str(&format!(
            "**The machine was shared during this measurement**: other programs used up to {:.0} % of the processors. CPU time \
             is counted per process, so their time is not in the figures, but they took caches and waiting time.\n\n",
            most * 100.0
        ));
    }
    text.push_str("## Goals\n\nAs they were set before the first measurement.\n\n| Goal | Measured | |\n|---|---|---|\n");
    for goals::Goal { text: goal, measured, met } in goals::all(stored) {
        let met = if met { "met" } else { "**missed**" };
        text.push_str(&format!("| {goal} | {measured} | {met} |\n"));
    }
    text.push_str("\n## Results\n\n");
    for (name, measured) in stored {
        text.push_str(&part(name, measured));
    }
    text + METHOD.trim_end() + "\n"
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
        let machine = Machine {
            cores: 2,
            kernel: "6.1".to_owned(),
            date: "2026-01-02".to_owned(),
            perl: String::new(),
        };
        let (haproxy, nginx) = ("HAProxy 2".to_owned(), "nginx 1".to_owned());
        page(&machine, &Versions { haproxy, nginx }, stored)
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
