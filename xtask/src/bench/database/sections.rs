//! The parts, each a section of the page.

use super::runs::{CONNECTIONS, IN_FLIGHT, Kind, Run, WRITERS, bare, database, through_daemon};
use crate::bench::ground::Ground;
use crate::bench::load::{Account, Load, Plan};
use crate::bench::numbers::Numbers;
use crate::bench::process;
use crate::bench::statistics::Quartiles;
use crate::bench::template::{Template, row};
use crate::shell::Failure;
use std::process::Command;
use std::time::Duration;

pub(super) const TEXT: Template = Template(include_str!("../../../pages/database.md"));

const SATURATED: Plan = Plan {
    connections: CONNECTIONS,
    rate: None,
    in_flight: IN_FLIGHT,
    seconds: 0,
    lines: "json",
    reply: "ack",
};

fn verdict(goal: &str, reached: bool) -> String {
    format!("{goal}: {}", if reached { "reached" } else { "**missed**" })
}

fn shown(runs: &[Run], of: impl Fn(&Run) -> f64) -> String {
    Quartiles::of_each(runs, of).shown()
}

/// Rows acknowledged per second, against writers that commit row by row.
pub(super) fn written(ground: &Ground, kind: Kind) -> Result<String, Failure> {
    let name = if kind == Kind::Postgres { "PostgreSQL" } else { "MariaDB" };
    let (server, target) = database(kind);
    let plan = Plan { seconds: ground.seconds(), ..SATURATED };
    let [ours, theirs] = ground.pairs(
        name,
        || through_daemon(ground, &server, &target, plan),
        || bare(ground, &server, &target, ["single", WRITERS, "1"], None),
    )?;
    let ratio = Quartiles::of_ratios(&ours, &theirs, Run::rows_a_second);
    let goal = match kind {
        Kind::Postgres => verdict("Goal at least 4 times", ratio.median >= 4.0),
        Kind::Mariadb => "No goal was set".to_owned(),
    };
    Ok(TEXT.fill(
        "written",
        &[
            ("name", &name),
            ("connections", &CONNECTIONS),
            ("in_flight", &IN_FLIGHT),
            ("writers", &WRITERS),
            ("rows", &shown(&ours, Run::rows_a_second)),
            ("p50", &shown(&ours, |run| run.p50_ms)),
            ("p99", &shown(&ours, |run| run.p99_ms)),
            ("batch", &shown(&ours, |run| run.batch)),
            ("cpu", &shown(&ours, |run| run.cpu_us)),
            ("bare_rows", &shown(&theirs, Run::rows_a_second)),
            ("bare_cpu", &shown(&theirs, |run| run.cpu_us)),
            ("ratio", &ratio.shown()),
            ("goal", &goal),
        ],
    ))
}

/// CPU time per row of the daemon, against a bare loop and a bare client.
pub(super) fn cpu(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let plan = Plan { seconds: ground.seconds(), ..SATURATED };
    // The batch size that the daemon reaches by itself.
    let batch = through_daemon(ground, &server, &target, plan)?.batch.round().max(1.0);
    let batch = format!("{batch}");
    let (mut loops, mut clients, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    let [ours, theirs] = ground.pairs(
        "cpu",
        || through_daemon(ground, &server, &target, plan),
        || {
            let (account, cpu_us) = echoed(ground, "echo_bare", plan)?;
            let echo = cpu_us / account.answered as f64;
            let client = bare(ground, &server, &target, ["unnest", "1", &batch], None)?;
            let reader = bare(ground, &server, &target, ["records", "1", &batch], None)?;
            loops.push(echo);
            clients.push(client.cpu_us);
            readers.push(reader.cpu_us);
            Ok(Run { cpu_us: echo + client.cpu_us, ..client })
        },
    )?;
    let cpu = |run: &Run| run.cpu_us;
    let ratio = Quartiles::of_ratios(&ours, &theirs, cpu);
    let read: Vec<f64> = loops.iter().zip(&readers).map(|(echo, reader)| echo + reader).collect();
    let daemon: Vec<f64> = ours.iter().map(cpu).collect();
    Ok(TEXT.fill(
        "cpu",
        &[
            ("batch", &batch),
            ("ours", &shown(&ours, cpu)),
            ("loop", &Quartiles::of(&loops).shown()),
            ("client", &Quartiles::of(&clients).shown()),
            ("sum", &shown(&theirs, cpu)),
            ("reader", &Quartiles::of(&readers).shown()),
            ("ratio", &ratio.shown()),
            ("goal", &verdict("Goal at most 1.25 times", ratio.median <= 1.25)),
            ("read", &Quartiles::ratio(&daemon, &read).shown()),
        ],
    ))
}

/// Runs an example that only echoes, with the same lines. Returns the account and the CPU time in µs.
fn echoed(ground: &Ground, example: &str, plan: Plan) -> Result<(Account, f64), Failure> {
    let echo = ground.start(Command::new(ground.example(example)), "echo")?;
    let plan = Plan { reply: "any", ..plan };
    let load = || Load::start(ground, &echo.address, plan)?.account();
    let (cpu_us, account) = process::cpu_us(&echo.own(&[]), load)?;
    echo.stop()?;
    Ok((account, cpu_us))
}

/// The methods of sending a batch to PostgreSQL: rows per second and CPU time of the client, each compared with UNNEST.
pub(super) fn methods(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    // There are five pairs of methods and sizes. One second of each is thousands of batches.
    let ground = &Ground { window: Duration::from_secs(1), ..ground.clone() };
    let mut rows = String::new();
    // A statement has at most 65,535 parameters, which is too few for 10,000 rows of values.
    let pairs = [("100", "copy"), ("100", "values"), ("1000", "copy"), ("1000", "values")];
    for (batch, method) in pairs.into_iter().chain([("10000", "copy")]) {
        let [unnest, other] = ground.pairs(
            &format!("{method} × {batch}"),
            || bare(ground, &server, &target, ["unnest", "1", batch], None),
            || bare(ground, &server, &target, [method, "1", batch], None),
        )?;
        let mut line = |name: &str, runs: &[Run], ratio: &str| {
            let (a_second, cpu) = (shown(runs, Run::rows_a_second), shown(runs, |run| run.cpu_us));
            rows += &row(&[&batch, &name, &a_second, &cpu, &ratio]);
        };
        if method == "copy" {
            line("UNNEST", &unnest, "1");
        }
        let ratio = Quartiles::of_ratios(&other, &unnest, Run::rows_a_second).shown();
        line(&method.to_uppercase(), &other, &ratio);
    }
    Ok(TEXT.fill("methods", &[("rows", &rows)]))
}

/// Ten rows per second: the latency that the daemon adds to a bare commit of one row.
pub(super) fn latency(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let seconds = ground.seconds().max(5);
    let plan = Plan { connections: 10, rate: Some(1.0), in_flight: 1, seconds, ..SATURATED };
    let paced = Ground { window: Duration::from_secs(seconds.into()), ..ground.clone() };
    let [ours, theirs] = ground.pairs(
        "latency",
        || through_daemon(ground, &server, &target, plan),
        || {
            let (account, _) = echoed(ground, "handler_echo", plan)?;
            let bare = bare(&paced, &server, &target, ["single", "1", "1"], Some("10"))?;
            Ok(Run { p50_ms: account.p50_ms + bare.p50_ms, ..bare })
        },
    )?;
    let p50 = |run: &Run| run.p50_ms;
    let ratio = Quartiles::of_ratios(&ours, &theirs, p50);
    Ok(TEXT.fill(
        "latency",
        &[
            ("ours", &shown(&ours, p50)),
            ("theirs", &shown(&theirs, p50)),
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
    let mut last = [(0.0, 0.0, 0.0); 3];
    for threads in ["1", "5", "10", "20", "30"] {
        let ms = ground.rounds(&format!("{threads} threads"), WAYS.len(), |_, at| {
            let mut command = Command::new(ground.example("read_rows"));
            command.args([&target, threads, "100", WAYS[at].0]);
            let said = Numbers::of(command)?;
            last[at] = (said.get("allocations")?, said.get("held")?, said.get("bytes")?);
            Ok(1e3 * said.get("seconds")?)
        })?;
        let [own, strings, driver] = [0, 1, 2].map(|at: usize| Quartiles::of(&ms[at]).shown());
        let ratio = |at: usize| Quartiles::ratio(&ms[0], &ms[at]).shown();
        rows += &row(&[&threads, &own, &strings, &driver, &ratio(1), &ratio(2)]);
    }
    for ((_, name), (allocations, held, bytes)) in WAYS.into_iter().zip(last) {
        // A row has 7 bytes before its values, and each value has 4.
        let times = held / (bytes + 1000.0 * (7.0 + 12.0 * 4.0));
        memory += &format!("| {name} | {allocations:.0} | {held:.0} | {times:.2} |\n");
    }
    Ok(TEXT.fill("rows", &[("rows", &rows), ("memory", &memory)]))
}
