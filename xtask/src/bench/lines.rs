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

use super::ground::Ground;
use super::load::{Load, Plan};
use super::page::{self, Better, Row};
use super::process;
use super::server::Server;
use super::system_calls;
use crate::shell::Failure;
use std::path::Path;
use std::process::Command;
use std::slice;
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
pub(super) struct Shape {
    connections: u32,
    /// Lines per second on each connection; `None`: as fast as they are answered.
    rate: Option<u32>,
    /// The maximum number of lines in flight per connection. Paced loads stay far below it.
    in_flight: u32,
    /// The goal for the ratio of the peer's CPU time to ours.
    goal: Option<f64>,
}

/// The loads of row A: a thousand quiet clients, and thirty busy ones.
pub(super) const SHAPES: [Shape; 2] = [
    Shape { connections: 1000, rate: Some(1), in_flight: IN_FLIGHT, goal: Some(20.0) },
    Shape { connections: 30, rate: Some(50), in_flight: IN_FLIGHT, goal: None },
];

#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    Ours,
    Peer,
    /// Ours with many lines in flight per program, and a queue that holds all lines of the clients.
    Saturated,
    /// IO::Multiplex with the same number of lines in flight.
    PeerSaturated,
    /// Ours, with this number of lines in flight per program.
    Pool(u32),
    /// A bare loop with this number of lines in flight per program.
    Bare(u32, &'a Path),
}

/// Measures the CPU time in µs per line of a pool of programs with this pipeline, ours against a bare loop.
pub(super) fn pool(ground: &Ground, pipeline: u32, bare: &Path) -> Result<[Vec<f64>; 2], Failure> {
    let load = Shape { connections: 1000, rate: Some(10), in_flight: IN_FLIGHT, goal: None };
    let name = format!("a pool with {pipeline} in flight");
    ground.pairs(
        &name,
        || cpu_us(ground, (Side::Pool(pipeline), load)),
        || cpu_us(ground, (Side::Bare(pipeline, bare), load)),
    )
}

/// Measures all rounds of one load.
pub(super) fn measure(ground: &Ground, shape: Shape) -> Result<Row, Failure> {
    let Shape { connections, rate, .. } = shape;
    let rate = rate.unwrap_or_default();
    let name = format!("{connections} connections × {rate} line/s to {WORKERS} programs");
    row(ground, name, [(Side::Ours, shape), (Side::Peer, shape)])
}

/// Measures the maximum throughput with programs that have many lines in flight.
pub(super) fn saturated(ground: &Ground) -> Result<Row, Failure> {
    let (connections, in_flight) = (1000, 20);
    let shape = Shape { connections, rate: None, in_flight, goal: Some(8.0) };
    let name = format!(
        "{connections} connections × {in_flight} in flight, {WORKERS} programs × {PIPELINE} in flight"
    );
    row(ground, name, [(Side::Saturated, shape), (Side::PeerSaturated, shape)])
}

/// Returns its section of the page.
pub(super) fn saturated_section(row: &Row) -> String {
    let [ours, theirs] = row.calls.clone().unwrap_or_default();
    let rows = page::rows(slice::from_ref(row));
    page::TEXT.fill(
        "saturated",
        &[("rows", &rows), ("ours", &ours), ("theirs", &theirs), ("peer", &row.peer)],
    )
}

/// Runs all rounds of one load, and one more to count system calls.
fn row(
    ground: &Ground,
    name: String,
    [ours, peer]: [(Side<'_>, Shape); 2],
) -> Result<Row, Failure> {
    let pairs = ground.pairs(&name, || cpu_us(ground, ours), || cpu_us(ground, peer))?;
    let measure = ("CPU µs a line", Better::Less("times less CPU"));
    let row = Row::new(name, measure, "IO::Multiplex", &pairs);
    let calls = Some([calls(ground, ours)?, calls(ground, peer)?]);
    Ok(Row { goal: ours.1.goal, calls, ..row })
}

fn server(ground: &Ground, side: Side<'_>) -> Result<Server, Failure> {
    let roadstead = ground.roadstead();
    let (command, log) = match side {
        Side::Ours | Side::Pool(_) => {
            let mut command = Command::new(&roadstead);
            let workers = format!("--workers={WORKERS}..{WORKERS}");
            command.args(["run", "--listen=127.0.0.1:0", &workers]);
            if let Side::Pool(pipeline) = side {
                command.arg(format!("--pipeline={pipeline}"));
            }
            command.arg("--");
            command.arg(&roadstead).args(WORKER);
            (command, "ours")
        }
        Side::Saturated => return saturated_server(ground),
        Side::Bare(in_flight, program) => {
            let mut command = Command::new(program);
            command.args([WORKERS.to_string(), in_flight.to_string()]);
            command.arg(&roadstead).args(WORKER);
            (command, "bare")
        }
        Side::Peer | Side::PeerSaturated => {
            let mut command = Command::new("perl");
            command.arg(ground.root.join("xtask/peers/io_multiplex.pl"));
            if matches!(side, Side::PeerSaturated) {
                command.arg(format!("--pipeline={PIPELINE}"));
            }
            command.arg(WORKERS.to_string()).arg(&roadstead).args(WORKER);
            (command, "peer")
        }
    };
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
pub(super) fn start(ground: &Ground, side: Side<'_>) -> Result<(Server, Vec<u32>), Failure> {
    let server = server(ground, side)?;
    let workers = server.workers(&WORKER, WORKERS)?;
    Ok((server, workers))
}

/// Measures CPU time per line of the server's own processes in a window of one run.
fn cpu_us(ground: &Ground, what: (Side<'_>, Shape)) -> Result<f64, Failure> {
    let (cpu_us, lines) = window(ground, what, |own, pass| process::cpu_us(own, pass))?;
    Ok(cpu_us / lines)
}

/// Counts their system calls per line in a window of one run.
fn calls(ground: &Ground, what: (Side<'_>, Shape)) -> Result<String, Failure> {
    let count = |own: &[u32], pass: Pass<'_>| system_calls::counted(own, &ground.folder, pass);
    window(ground, what, count).map(|(calls, lines)| system_calls::shown(&calls, lines))
}

/// Waits for the end of a window. Returns the bytes that the programs wrote in it.
type Pass<'a> = &'a dyn Fn() -> Result<u64, Failure>;

/// Runs one side once. Returns the result of `measure`, which observes the server's own processes during a window, and
/// the number of lines that were answered in the window.
fn window<T>(
    ground: &Ground,
    (side, shape): (Side<'_>, Shape),
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
