//! The parts, each a section of the page.

use super::runs::{
    CONNECTIONS, Ground, IN_FLIGHT, Kind, Run, WRITERS, bare, cpu_of, database, number_of,
    quartiles, ratios, rounds, through_daemon,
};
use crate::bench::load::{Load, Plan};
use crate::bench::order::{self, Order};
use crate::bench::server::Server;
use crate::bench::statistics::{Pairs, Quartiles};
use crate::bench::trial::{self, shown};
use crate::shell::{self, Failure};
use std::process::Command;

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

/// Rows acknowledged a second, against writers that commit row by row.
pub(super) fn written(ground: &Ground, kind: Kind) -> Result<String, Failure> {
    let name = if kind == Kind::Postgres { "PostgreSQL" } else { "MariaDB" };
    let (server, target) = database(kind);
    let plan = Plan { seconds: ground.seconds, ..SATURATED };
    let (ours, theirs) = rounds(
        ground,
        name,
        || through_daemon(ground, &server, &target, plan),
        || bare(ground, &server, &target, ["single", WRITERS, "1"], None),
    )?;
    let ratio = ratios(&ours, &theirs, Run::rows_a_second);
    let goal = match kind {
        Kind::Postgres => verdict("Goal at least 4 times", ratio.median >= 4.0),
        Kind::Mariadb => "No goal was set".to_owned(),
    };
    Ok(format!(
        "## {name}: rows acknowledged\n\n\
         {CONNECTIONS} clients with {IN_FLIGHT} rows in flight each, a listener straight into the pool, one worker; each \
         acknowledgement compared with\nits line, and the rows counted by the server's own client after each run. Beside it {WRITERS} connections \
         of a bare client that commit row by row.\n\n\
         | | rows a second | latency, median ms | p99 ms | rows a commit | CPU µs a row |\n|---|---|---|---|---|---|\n\
         | Roadstead | {} | {} | {} | {} | {} |\n| row by row | {} | – | – | 1 | {} |\n\n\
         Rows a second: {} times. {goal}.\n",
        shown(quartiles(&ours, Run::rows_a_second)),
        shown(quartiles(&ours, |run| run.p50_ms)),
        shown(quartiles(&ours, |run| run.p99_ms)),
        shown(quartiles(&ours, |run| run.batch)),
        shown(quartiles(&ours, |run| run.cpu_us)),
        shown(quartiles(&theirs, Run::rows_a_second)),
        shown(quartiles(&theirs, |run| run.cpu_us)),
        shown(ratio),
    ))
}

/// CPU a row of the daemon, against a bare loop and a bare client.
pub(super) fn cpu(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let plan = Plan { seconds: ground.seconds, ..SATURATED };
    // The size that the daemon's batches have by themselves.
    let batch = through_daemon(ground, &server, &target, plan)?.batch.round().max(1.0);
    let batch = format!("{batch}");
    let (mut loops, mut clients, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    let (ours, theirs) = rounds(
        ground,
        "cpu",
        || through_daemon(ground, &server, &target, plan),
        || {
            let echo = echoed(ground, plan)?;
            let client = bare(ground, &server, &target, ["unnest", "1", &batch], None)?;
            let reader = bare(ground, &server, &target, ["records", "1", &batch], None)?;
            loops.push(echo);
            clients.push(client.cpu_us);
            readers.push(reader.cpu_us);
            Ok(Run { cpu_us: echo + client.cpu_us, ..client })
        },
    )?;
    let ratio = ratios(&ours, &theirs, |run| run.cpu_us);
    let mut read = Pairs::default();
    for (ours, (echo, reader)) in ours.iter().zip(loops.iter().zip(&readers)) {
        read.push(ours.cpu_us, echo + reader);
    }
    Ok(format!(
        "## CPU of a row\n\n\
         The daemon with the load above into PostgreSQL, against the sum of two: a bare loop over epoll that echoes the same lines \
         to the same clients\n(`crates/event/examples/echo_bare.rs`), and a bare client that sends batches of {batch} rows by the \
         same statement (`crates/database/examples/bare_writer.rs`).\n\n\
         | | CPU µs a row |\n|---|---|\n| Roadstead | {} |\n| bare loop, a line | {} |\n| bare client, a row | {} |\n| their sum | {} |\n| bare client that reads each row from its line first | {} |\n\n\
         {} times the sum. {}.\n\n\
         The bare client has its rows before it is measured: numbers and texts that are sent as they are. What the sum leaves out is what makes rows of \
         lines: each line is\nread as JSON and its values are found by name, an acknowledgement is made of it, it waits in a queue, goes to another thread with its batch and its \
         answer comes\nback, and leaves in its turn behind those of its own client. Beside a client that reads each row with `serde_json` into a \
         struct, and the same bare loop: {} times.\n",
        shown(quartiles(&ours, |run| run.cpu_us)),
        shown(Quartiles::of(&loops)),
        shown(Quartiles::of(&clients)),
        shown(quartiles(&theirs, |run| run.cpu_us)),
        shown(Quartiles::of(&readers)),
        shown(ratio),
        verdict("Goal at most 1.25 times", ratio.median <= 1.25),
        shown(read.ours_by_theirs()),
    ))
}

/// CPU µs a line of a loop that only echoes.
fn echoed(ground: &Ground, plan: Plan) -> Result<f64, Failure> {
    let echo = Server::start(Command::new(&ground.echo_bare), &ground.folder.join("echo.log"))?;
    let before = cpu_of(&echo)?;
    let plan = Plan { reply: "any", ..plan };
    let account = Load::start(&ground.roadstead, &echo.address, plan)?.account()?;
    let cpu = cpu_of(&echo)? - before;
    echo.stop()?;
    Ok(cpu / account.answered as f64)
}

/// How a batch may be sent to PostgreSQL: rows a second and CPU of the client, each beside UNNEST.
pub(super) fn methods(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    // Five pairs of methods and sizes: a second of each is thousands of batches.
    let ground = &Ground { seconds: 1, ..ground.clone() };
    let mut text = "## How a batch is sent to PostgreSQL\n\n\
         One bare client, one commit a batch. Roadstead sends UNNEST: COPY knows no `on conflict`, and a list of values is \
         another statement for each number of rows. Where COPY is faster, at 10,000 rows a commit, it is not taken either, though `batch.rows` goes \
         to 100,000: UNNEST alone stores more rows a second than the whole daemon brings it, so it is not what is waited for, and \
         two ways would be two sets of errors, types and conflicts.\n\n\
         | rows a commit | method | rows a second | CPU µs a row of the client | rows a second, times UNNEST |\n|---|---|---|---|---|\n"
        .to_owned();
    for batch in ["100", "1000", "10000"] {
        for method in ["copy", "values"] {
            // A statement has at most 65,535 parameters.
            if method == "values" && batch == "10000" {
                continue;
            }
            let (unnest, other) = rounds(
                ground,
                &format!("{method} × {batch}"),
                || bare(ground, &server, &target, ["unnest", "1", batch], None),
                || bare(ground, &server, &target, [method, "1", batch], None),
            )?;
            let mut line = |name: &str, runs: &[Run], ratio: String| {
                text.push_str(&format!(
                    "| {batch} | {name} | {} | {} | {ratio} |\n",
                    shown(quartiles(runs, Run::rows_a_second)),
                    shown(quartiles(runs, |run| run.cpu_us)),
                ));
            };
            if method == "copy" {
                line("UNNEST", &unnest, "1".to_owned());
            }
            let ratio = shown(ratios(&other, &unnest, Run::rows_a_second));
            line(if method == "copy" { "COPY" } else { "VALUES" }, &other, ratio);
        }
    }
    Ok(text)
}

/// Ten rows a second: what the daemon adds to a bare commit of one row.
pub(super) fn latency(ground: &Ground) -> Result<String, Failure> {
    let (server, target) = database(Kind::Postgres);
    let plan = Plan {
        connections: 10,
        rate: Some(1.0),
        in_flight: 1,
        seconds: ground.seconds.max(5),
        ..SATURATED
    };
    let (ours, theirs) = rounds(
        ground,
        "latency",
        || through_daemon(ground, &server, &target, plan),
        || {
            let handler = Command::new(&ground.handler_echo);
            let echo = Server::start(handler, &ground.folder.join("echo.log"))?;
            let echo_plan = Plan { reply: "any", ..plan };
            let account = Load::start(&ground.roadstead, &echo.address, echo_plan)?.account()?;
            echo.stop()?;
            let paced = Ground { seconds: plan.seconds, ..ground.clone() };
            let bare = bare(&paced, &server, &target, ["single", "1", "1"], Some("10"))?;
            Ok(Run { p50_ms: account.p50_ms + bare.p50_ms, ..bare })
        },
    )?;
    let ratio = ratios(&ours, &theirs, |run| run.p50_ms);
    Ok(format!(
        "## Ten rows a second\n\n\
         Ten clients with a row a second each into PostgreSQL, against the sum of the same lines answered by a Handler that echoes them \
         (`crates/roadstead/examples/handler_echo.rs`)\nand of a commit of one row by a bare client, ten of them a second: both wake up as \
         cold as the daemon does.\n\n\
         | | median ms |\n|---|---|\n| Roadstead | {} |\n| echo by a Handler, and a bare commit | {} |\n\n{} times. {}.\n",
        shown(quartiles(&ours, |run| run.p50_ms)),
        shown(quartiles(&theirs, |run| run.p50_ms)),
        shown(ratio),
        verdict("Goal at most 1.15 times", ratio.median <= 1.15),
    ))
}

/// Rows of a query, into what three ways keep of them.
pub(super) fn read(ground: &Ground) -> Result<String, Failure> {
    let (_server, target) = database(Kind::Postgres);
    let mut text = "## 1000 rows × 12 columns, 100 times\n\n\
         The case that naviserver's sets were rebuilt for: 100 queries of PostgreSQL shared by several threads, each with a connection of its \
         own, into\n`fields::Rows` (one buffer, one index), into a string for each value, and into the driver's own rows. Allocations and \
         bytes held are of one query.\n\n\
         | threads | ms, Rows | a string a value | the driver's rows | Rows × strings | Rows × driver |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let ways = ["rows", "strings", "driver"];
    let mut order = Order::new(order::seed());
    let mut last = [(0.0, 0.0, 0.0); 3];
    for threads in ["1", "5", "10", "20", "30"] {
        let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..ground.rounds as usize {
            for at in order.round(ways.len()) {
                let mut command = Command::new(&ground.read_rows);
                command.args([&target, threads, "100", ways[at]]);
                let said = shell::output(command)?;
                let number = number_of(&said, "read_rows")?;
                seconds[at].push(1e3 * number("seconds")?);
                last[at] = (number("allocations")?, number("held")?, number("bytes")?);
            }
            eprintln!("{threads} threads: round {} of {}", round + 1, ground.rounds);
        }
        let ratio = |at: usize| trial::ratio(&seconds[0], &seconds[at]);
        let [rows, strings, driver] = [0, 1, 2].map(|at| shown(Quartiles::of(&seconds[at])));
        text.push_str(&format!(
            "| {threads} | {rows} | {strings} | {driver} | {} | {} |\n",
            shown(ratio(1)),
            shown(ratio(2))
        ));
    }
    text.push_str("\n| | allocations | bytes held | held × bytes that came |\n|---|---|---|---|\n");
    for (name, (allocations, held, bytes)) in
        ["Rows", "a string a value", "the driver's rows"].iter().zip(last)
    {
        // A row has 7 bytes before its values, and each value 4.
        let times = held / (bytes + 1000.0 * (7.0 + 12.0 * 4.0));
        text.push_str(&format!("| {name} | {allocations:.0} | {held:.0} | {times:.2} |\n"));
    }
    Ok(text)
}
