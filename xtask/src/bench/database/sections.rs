//! The parts, each a section of the page.

use super::runs::{Kind, WRITERS, bare, database, echoed, through_daemon};
use crate::bench::ground::Ground;
use crate::bench::load::{Plan, saturating};
use crate::bench::numbers::{self, number};
use crate::bench::page::{Template, row};
use crate::bench::statistics::Quartiles;
use crate::bench::trial::Trial;
use crate::shell::{Failure, command};
use std::time::Duration;

pub(super) const TEXT: Template = Template(include_str!("../../../pages/database.md"));

fn verdict(goal: &str, reached: bool) -> String {
    format!("{goal}: {}", if reached { "reached" } else { "**missed**" })
}

const OURS: &str = "Roadstead";
const BARE: &str = "bare client";

/// Rows acknowledged per second, against writers that commit row by row.
pub(super) fn written(ground: &Ground, kind: Kind) -> Result<String, Failure> {
    let name = if kind == Kind::Postgres { "PostgreSQL" } else { "MariaDB" };
    let (server, target) = database(kind);
    let plan = saturating(ground.seconds());
    let trial = ground.rounds(name, &[OURS, BARE], |_, at| match at {
        0 => through_daemon(ground, &server, &target, plan),
        _ => bare(ground, &server, &target, ["single", WRITERS, "1"], None),
    })?;
    let ratio = trial.ratio("rows_s", OURS, BARE);
    let goal = match kind {
        Kind::Postgres => verdict("Goal at least 4 times", ratio.median >= 4.0),
        Kind::Mariadb => "No goal was set".to_owned(),
    };
    let ours = |what| trial.of(OURS, what).shown();
    Ok(TEXT.fill(
        "written",
        &[
            ("name", &name),
            ("connections", &plan.connections),
            ("in_flight", &plan.in_flight),
            ("writers", &WRITERS),
            ("rows", &ours("rows_s")),
            ("p50", &ours("p50_ms")),
            ("p99", &ours("p99_ms")),
            ("batch", &ours("batch")),
            ("cpu", &ours("cpu_us")),
            ("bare_rows", &trial.of(BARE, "rows_s").shown()),
            ("bare_cpu", &trial.of(BARE, "cpu_us").shown()),
            ("ratio", &ratio.shown()),
            ("goal", &goal),
        ],
    ))
}

/// CPU time per row of the daemon, against a bare loop and a bare client.
pub(super) fn cpu(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let plan = saturating(ground.seconds());
    // The batch size that the daemon reaches by itself.
    let batch = number(&through_daemon(ground, &server, &target, plan)?, "batch")?;
    let batch = format!("{}", batch.round().max(1.0));
    let bare = |method| bare(ground, &server, &target, [method, "1", &batch], None);
    let subjects = [OURS, "loop", "client", "reader"];
    let trial = ground.rounds("cpu", &subjects, |_, at| match at {
        0 => through_daemon(ground, &server, &target, plan),
        1 => echoed(ground, "echo_bare", plan),
        2 => bare("unnest"),
        _ => bare("records"),
    })?;
    let cpu = |subject| trial.samples(subject, "cpu_us");
    let with_loop = |subject| plus(&cpu("loop"), &cpu(subject));
    let ratio = Quartiles::ratio(&cpu(OURS), &with_loop("client"));
    let shown = |subject| trial.of(subject, "cpu_us").shown();
    Ok(TEXT.fill(
        "cpu",
        &[
            ("batch", &batch),
            ("ours", &shown(OURS)),
            ("loop", &shown("loop")),
            ("client", &shown("client")),
            ("sum", &Quartiles::of(&with_loop("client")).shown()),
            ("reader", &shown("reader")),
            ("ratio", &ratio.shown()),
            ("goal", &verdict("Goal at most 1.25 times", ratio.median <= 1.25)),
            ("read", &Quartiles::ratio(&cpu(OURS), &with_loop("reader")).shown()),
        ],
    ))
}

/// Returns the sums, round by round.
fn plus(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one + other).collect()
}

/// The methods of sending a batch to PostgreSQL: rows per second and CPU time of the client, each compared with UNNEST.
pub(super) fn methods(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    // There are eight methods and sizes. One second of each is thousands of batches.
    let ground = &Ground { window: Duration::from_secs(1), ..ground.clone() };
    let mut rows = String::new();
    // A statement has at most 65,535 parameters, which is too few for 10,000 rows of values.
    let all = ["UNNEST", "COPY", "VALUES"];
    for (batch, methods) in [("100", &all[..]), ("1000", &all), ("10000", &all[..2])] {
        let trial = ground.rounds(&format!("{batch} rows"), methods, |_, at| {
            let method = methods[at].to_lowercase();
            bare(ground, &server, &target, [&method, "1", batch], None)
        })?;
        for method in methods {
            let [a_second, cpu] = ["rows_s", "cpu_us"].map(|what| trial.of(method, what).shown());
            let ratio = trial.ratio("rows_s", method, "UNNEST").shown();
            let ratio = if *method == "UNNEST" { "1" } else { &ratio };
            rows += &row(&[&batch, method, &a_second, &cpu, &ratio]);
        }
    }
    Ok(TEXT.fill("methods", &[("rows", &rows)]))
}

/// Ten rows per second: the latency that the daemon adds to a bare commit of one row.
pub(super) fn latency(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let seconds = ground.seconds().max(5);
    let plan = Plan { connections: 10, rate: Some(1.0), in_flight: 1, ..saturating(seconds) };
    let paced = Ground { window: Duration::from_secs(seconds.into()), ..ground.clone() };
    let trial = ground.rounds("latency", &[OURS, "echo", BARE], |_, at| match at {
        0 => through_daemon(ground, &server, &target, plan),
        1 => echoed(ground, "handler_echo", plan),
        _ => bare(&paced, &server, &target, ["single", "1", "1"], Some("10")),
    })?;
    let p50 = |subject| trial.samples(subject, "p50_ms");
    let theirs = plus(&p50("echo"), &p50(BARE));
    let ratio = Quartiles::ratio(&p50(OURS), &theirs);
    Ok(TEXT.fill(
        "latency",
        &[
            ("ours", &trial.of(OURS, "p50_ms").shown()),
            ("theirs", &Quartiles::of(&theirs).shown()),
            ("ratio", &ratio.shown()),
            ("goal", &verdict("Goal at most 1.15 times", ratio.median <= 1.15)),
        ],
    ))
}

/// The data structures for the result of a query, by their names in the example and on the page.
const WAYS: [(&str, &str); 3] =
    [("rows", "Rows"), ("strings", "a string a value"), ("driver", "the driver's rows")];

/// Rows of a query, read into three data structures.
pub(super) fn read(ground: &Ground) -> Result<String, Failure> {
    let (_server, target) = database(Kind::Postgres);
    let (mut rows, mut memory) = (String::new(), String::new());
    let ways = WAYS.map(|(way, _)| way);
    let mut last = Trial::default();
    for threads in ["1", "5", "10", "20", "30"] {
        let trial = ground.rounds(&format!("{threads} threads"), &ways, |_, at| {
            numbers::object(command(
                ground.example("read_rows"),
                [&target, threads, "100", ways[at]],
            ))
        })?;
        let ms = |way| trial.of(way, "seconds").map(|seconds| seconds * 1e3).shown();
        let [own, strings, driver] = ways.map(ms);
        let ratio = |way| trial.ratio("seconds", "rows", way).shown();
        rows += &row(&[&threads, &own, &strings, &driver, &ratio("strings"), &ratio("driver")]);
        last = trial;
    }
    for (way, name) in WAYS {
        let [allocations, held, bytes] =
            ["allocations", "held", "bytes"].map(|what| last.median(way, what));
        // A row has 7 bytes before its values, and each value has 4.
        let times = held / (bytes + 1000.0 * (7.0 + 12.0 * 4.0));
        memory += &format!("| {name} | {allocations:.0} | {held:.0} | {times:.2} |\n");
    }
    Ok(TEXT.fill("rows", &[("rows", &rows), ("memory", &memory)]))
}
