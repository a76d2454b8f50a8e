//! Lines handed to programs: CPU time of the server per line, ours against IO::Multiplex.
//!
//! Both serve the same clients with the same twenty programs, without a database. The measured window is in the middle
//! of a run: after the last connection was accepted (accepting is not part of the work, and the peer does it slowly)
//! and before the first is closed.
//!
//! ```text
//!   connect … all accepted | settle |######## window ########| … last lines, closing
//! ```
//!
//! The number of lines answered in the window is computed in the same way for both sides: the bytes that the programs
//! wrote in the window, divided by the bytes per line over the whole run.

use super::comparison::{Better, Comparison, OURS, TEXT};
use super::driver::Part;
use super::goals::Goal;
use super::ground::Ground;
use super::load::{Load, Plan};
use super::page::row;
use super::process;
use super::server::Server;
use super::system_calls;
use super::trial::Trial;
use crate::shell::{Failure, command};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// The number of programs behind each server.
const WORKERS: usize = 20;
/// The arguments with which `roadstead` echoes each line.
const WORKER: [&str; 2] = ["worker", "--echo"];
/// The time between the last accept and the window.
const SETTLE: Duration = Duration::from_secs(1);
/// Seconds after which a load ends if it is not stopped before. IO::Multiplex accepts only one connection per pass over
/// all that is ready, and needs ten seconds for a thousand.
pub(super) const LONGEST: u32 = 60;
/// The maximum number of lines in flight per connection of a paced load.
const IN_FLIGHT: u32 = 64;
/// The maximum number of lines in flight per program if the server is saturated.
const PIPELINE: u32 = 64;

/// The number of clients, and what they send.
#[derive(Clone, Copy, Debug)]
struct Shape {
    connections: u32,
    /// Lines per second on each connection; `None`: as fast as they are answered.
    rate: Option<u32>,
    /// The maximum number of lines in flight per connection. Paced loads stay far below it.
    in_flight: u32,
    /// The goal for the ratio of the peer's CPU time to ours.
    goal: Option<f64>,
}

/// The loads of row A: a thousand quiet clients, and thirty busy ones.
const SHAPES: [Shape; 2] = [
    Shape { connections: 1000, rate: Some(1), in_flight: IN_FLIGHT, goal: Some(20.0) },
    Shape { connections: 30, rate: Some(50), in_flight: IN_FLIGHT, goal: None },
];

/// The peer, and the subjects of a comparison with it.
pub(super) const PEER: &str = "IO::Multiplex";
pub(super) const SIDES: [&str; 2] = [OURS, PEER];
/// The subjects of a comparison with a bare loop.
pub(super) const POOL: [&str; 2] = [OURS, "bare loop"];

#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Ours,
    Peer,
    /// Ours with many lines in flight per program, and a queue that holds all lines of the clients.
    Saturated,
    /// IO::Multiplex with the same number of lines in flight.
    PeerSaturated,
    /// Ours, with this number of lines in flight per program.
    Pool(u32),
    /// A bare loop with this number of lines in flight per program.
    Bare(u32),
}

/// Measures the CPU time per line of a pool of programs with this pipeline, ours against a bare loop.
pub(super) fn pool(ground: &Ground, pipeline: u32) -> Result<Trial, Failure> {
    let load = Shape { connections: 1000, rate: Some(10), in_flight: IN_FLIGHT, goal: None };
    let name = format!("a pool with {pipeline} in flight");
    let sides = [Side::Pool(pipeline), Side::Bare(pipeline)];
    ground.rounds(&name, &POOL, |_, at| cpu_us(ground, (sides[at], load)))
}

/// Measures all paced loads.
pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let (mut rows, mut calls, mut goals) = (String::new(), String::new(), Vec::new());
    for shape in SHAPES {
        let Shape { connections, rate, .. } = shape;
        let rate = rate.unwrap_or_default();
        let name = format!("{connections} connections × {rate} line/s to {WORKERS} programs");
        let (line, goal, [ours, theirs]) =
            compared(ground, &name, [Side::Ours, Side::Peer], shape)?;
        rows += &line;
        calls += &row(&[&name, &ours, &format!("{PEER}: {theirs}")]);
        goals.extend(goal);
    }
    Ok(Part { goals, ..Part::values(json!({ "rows": rows, "calls": calls })) })
}

/// Measures the maximum throughput with programs that have many lines in flight.
pub(super) fn saturated(ground: &Ground) -> Result<Part, Failure> {
    let (connections, in_flight) = (1000, 20);
    let shape = Shape { connections, rate: None, in_flight, goal: Some(8.0) };
    let name = format!(
        "{connections} connections × {in_flight} in flight, {WORKERS} programs × {PIPELINE} in flight"
    );
    let sides = [Side::Saturated, Side::PeerSaturated];
    let (rows, goal, [ours, theirs]) = compared(ground, &name, sides, shape)?;
    let text = TEXT.fill(
        "saturated",
        &[("rows", &rows), ("ours", &ours), ("theirs", &theirs), ("peer", &PEER)],
    );
    Ok(Part { goals: goal.into_iter().collect(), ..Part::text(text) })
}

/// Runs all rounds of one load, and one more to count system calls. Returns the line of the table, the goal, and the
/// system calls of both sides.
fn compared(
    ground: &Ground,
    name: &str,
    sides: [Side; 2],
    shape: Shape,
) -> Result<(String, Option<Goal>, [String; 2]), Failure> {
    let trial = ground.rounds(name, &SIDES, |_, at| cpu_us(ground, (sides[at], shape)))?;
    let (better, goal) = (Better::Less("times less CPU"), shape.goal);
    let unit = "CPU µs a line";
    let compared = Comparison { name, unit, value: "cpu_us", better, peer: PEER, goal };
    let calls = [calls(ground, (sides[0], shape))?, calls(ground, (sides[1], shape))?];
    Ok((compared.row(&trial), compared.goal(&trial), calls))
}

fn server(ground: &Ground, side: Side) -> Result<Server, Failure> {
    let roadstead = ground.roadstead();
    let (command, log) = match side {
        Side::Ours | Side::Pool(_) => {
            let workers = format!("--workers={WORKERS}..{WORKERS}");
            let mut command = command(&roadstead, ["run", "--listen=127.0.0.1:0", &workers]);
            if let Side::Pool(pipeline) = side {
                command.arg(format!("--pipeline={pipeline}"));
            }
            command.arg("--");
            (command, "ours")
        }
        Side::Saturated => return saturated_server(ground),
        Side::Bare(in_flight) => (
            command(ground.example("pool_bare"), [WORKERS.to_string(), in_flight.to_string()]),
            "bare",
        ),
        Side::Peer | Side::PeerSaturated => {
            let mut command = command("perl", [ground.root.join("xtask/peers/io_multiplex.pl")]);
            if matches!(side, Side::PeerSaturated) {
                command.arg(format!("--pipeline={PIPELINE}"));
            }
            command.arg(WORKERS.to_string());
            (command, "peer")
        }
    };
    let mut command = command;
    command.arg(&roadstead).args(WORKER);
    ground.start(command, log)
}

/// Starts ours from a configuration, because a queue that rejects no line cannot be set by arguments.
fn saturated_server(ground: &Ground) -> Result<Server, Failure> {
    let text = format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"main\"\n\n\
         [pool.main]\nprogram = [{:?}, {:?}, {:?}]\nworkers = {{ min = {WORKERS}, max = {WORKERS} }}\n\
         pipeline = {PIPELINE}\nqueue = {{ max_requests = 40000 }}\n",
        ground.roadstead(),
        WORKER[0],
        WORKER[1]
    );
    ground.serve("saturated", &text)
}

/// Starts a server. Returns it with its programs when they run.
pub(super) fn start(ground: &Ground, side: Side) -> Result<(Server, Vec<u32>), Failure> {
    let server = server(ground, side)?;
    let workers = server.workers(&WORKER, WORKERS)?;
    Ok((server, workers))
}

/// Measures CPU time per line of the server's own processes in a window of one run.
fn cpu_us(ground: &Ground, what: (Side, Shape)) -> Result<Value, Failure> {
    let (cpu_us, lines) = window(ground, what, |own, pass| process::cpu_us(own, pass))?;
    Ok(json!({ "cpu_us": cpu_us / lines }))
}

/// Counts their system calls per line in a window of one run.
fn calls(ground: &Ground, what: (Side, Shape)) -> Result<String, Failure> {
    let count = |own: &[u32], pass: Pass<'_>| system_calls::counted(own, &ground.folder, pass);
    window(ground, what, count).map(|(calls, lines)| system_calls::shown(&calls, lines))
}

/// Waits for the end of a window. Returns the bytes that the programs wrote in it.
type Pass<'a> = &'a dyn Fn() -> Result<u64, Failure>;

/// Runs one side once. Returns the result of `measure`, which observes the server's own processes during a window, and
/// the number of lines that were answered in the window.
fn window<T>(
    ground: &Ground,
    (side, shape): (Side, Shape),
    measure: impl FnOnce(&[u32], Pass<'_>) -> Result<(T, u64), Failure>,
) -> Result<(T, f64), Failure> {
    let (server, workers) = start(ground, side)?;
    let own = server.own(&workers);
    let written = || process::sum(&workers, process::written);
    let before_all = written()?;
    let plan = Plan {
        connections: shape.connections,
        rate: shape.rate.map(f64::from),
        in_flight: shape.in_flight,
        seconds: ground.seconds() + LONGEST,
        lines: "work",
        reply: "any",
    };
    let ((measured, bytes), account) = Load::during(ground, &server, plan, SETTLE, || {
        measure(&own, &|| {
            let before = written()?;
            thread::sleep(ground.window);
            Ok(written()? - before)
        })
    })?;
    let bytes_a_line = (written()? - before_all) as f64 / account.answered as f64;
    server.stop()?;
    Ok((measured, bytes as f64 / bytes_a_line))
}
