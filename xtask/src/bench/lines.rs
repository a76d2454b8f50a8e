//! Lines handed to programs: CPU time a line of the server, ours against IO::Multiplex.
//!
//! Both serve the same clients with the same twenty programs, without a database. What is measured
//! is a window in the middle of a run: after the last of the connections was accepted (accepting is
//! not the work, and the peer is slow at it) and before the first is closed.
//!
//! ```text
//!   connect … all accepted | settle |######## window ########| … last lines, closing
//! ```
//!
//! The lines answered in the window are counted where neither side can be wrong: in the bytes that
//! the programs wrote in it, by the bytes a line takes over the whole run.

use super::ground::{Ground, pairs};
use super::load::{Load, Plan};
use super::page::{self, Row};
use super::process;
use super::server::{Server, wait_until};
use super::statistics::Pairs;
use super::system_calls::{self, Counting};
use crate::shell::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

/// Programs behind each server.
const WORKERS: usize = 20;
/// What makes `roadstead` the program that answers each line with itself.
const WORKER: [&str; 2] = ["worker", "--echo"];
/// Time between the last accept and the window.
const SETTLE: Duration = Duration::from_secs(1);
/// Seconds after which a load ends by itself if nobody does it before: IO::Multiplex takes a new
/// connection only once in a pass over all that is ready, and needs ten seconds for a thousand.
pub(super) const LONGEST: u32 = 60;
/// Lines in flight on a connection before the clients of a paced load would wait.
const IN_FLIGHT: u32 = 64;
/// Lines in flight to one program where the server is saturated.
const PIPELINE: u32 = 64;

/// How many clients send how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    connections: u32,
    /// Lines a second on each connection; as many as are answered when there is none.
    rate: Option<u32>,
    /// Lines on their way on a connection before its client waits; paced loads stay far below.
    in_flight: u32,
    /// How many times the peer's CPU time must be ours.
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
    /// Ours with many lines in flight to a program, and a queue for all that the clients have.
    Saturated,
    /// IO::Multiplex with as many.
    PeerSaturated,
    /// Ours, with so many lines in flight to a program.
    Pool(u32),
    /// A bare loop with as many.
    Bare(u32, &'a Path),
}

/// A pool that is held against a bare loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolShape<'a> {
    /// Lines in flight to one program.
    pub(super) pipeline: u32,
    /// The bare loop.
    pub(super) bare: &'a Path,
}

/// CPU µs a line of a pool of programs, ours against a bare loop.
pub(super) fn pool(ground: &Ground, shape: PoolShape<'_>) -> Result<Pairs, Failure> {
    let PoolShape { pipeline, bare } = shape;
    let load = Shape { connections: 1000, rate: Some(10), in_flight: IN_FLIGHT, goal: None };
    let cpu = |side| window(ground, load, side, false).map(|window| window.us_per_line());
    let name = format!("a pool with {pipeline} in flight");
    pairs(ground, &name, || cpu(Side::Pool(pipeline)), || cpu(Side::Bare(pipeline, bare)))
}

/// What one window gave.
#[derive(Debug)]
struct Window {
    cpu_ns: u64,
    lines: f64,
    /// System calls a line, where they were counted.
    calls: Option<String>,
}

impl Window {
    fn us_per_line(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.lines
    }
}

/// All rounds of one load.
pub(super) fn measure(ground: &Ground, shape: Shape) -> Result<Row, Failure> {
    let Shape { connections, rate, .. } = shape;
    let rate = rate.unwrap_or_default();
    let name = format!("{connections} connections × {rate} line/s to {WORKERS} programs");
    row(ground, name, [(Side::Ours, shape), (Side::Peer, shape)])
}

/// As many lines as go through, by programs that have many in flight.
pub(super) fn saturated(ground: &Ground) -> Result<Row, Failure> {
    let (connections, in_flight) = (1000, 20);
    let shape = Shape { connections, rate: None, in_flight, goal: Some(8.0) };
    let name = format!(
        "{connections} connections × {in_flight} in flight, {WORKERS} programs × {PIPELINE} in flight"
    );
    row(ground, name, [(Side::Saturated, shape), (Side::PeerSaturated, shape)])
}

/// Its section of the page.
pub(super) fn saturated_section(row: &Row) -> String {
    let mut text = format!("## Saturated\n\n{SATURATED}\n{}", page::rows(slice::from_ref(row)));
    if let Some([ours, theirs]) = &row.calls {
        text.push_str(&format!(
            "\nSystem calls a line, counted by strace in one further run each: Roadstead {ours}; {} {theirs}.\n",
            row.peer
        ));
    }
    text
}

const SATURATED: &str = "\
As *Lines to programs*, but the clients send the next line when one is answered, and both servers keep many lines in flight to
each program (`pipeline`, in the Perl script `--pipeline`). CPU time is that of the server alone. Both are busy all the
time, so lines of ours are many more than the peer's in the same window.
";

/// All rounds of one load, with the system calls of one more.
fn row(
    ground: &Ground,
    name: String,
    [ours, peer]: [(Side<'_>, Shape); 2],
) -> Result<Row, Failure> {
    let cpu = |(side, shape)| window(ground, shape, side, false).map(|it| it.us_per_line());
    let pairs = pairs(ground, &name, || cpu(ours), || cpu(peer))?;
    let calls = |(side, shape)| {
        let window = window(ground, shape, side, true)?;
        Ok(window.calls.unwrap_or_default())
    };
    Ok(Row {
        name,
        unit: "CPU µs a line",
        peer: "IO::Multiplex",
        ours: pairs.ours(),
        theirs: pairs.theirs(),
        ratio: pairs.theirs_by_ours(),
        ratio_means: "times less CPU",
        goal: ours.1.goal,
        calls: Some([calls(ours)?, calls(peer)?]),
    })
}

fn server(ground: &Ground, side: Side<'_>) -> Result<Server, Failure> {
    let (command, log) = match side {
        Side::Ours | Side::Pool(_) => {
            let mut command = Command::new(&ground.roadstead);
            let workers = format!("--workers={WORKERS}..{WORKERS}");
            command.args(["run", "--listen=127.0.0.1:0", &workers]);
            if let Side::Pool(pipeline) = side {
                command.arg(format!("--pipeline={pipeline}"));
            }
            command.arg("--");
            command.arg(&ground.roadstead).args(WORKER);
            (command, "ours.log")
        }
        Side::Saturated => (saturated_server(ground)?, "ours.log"),
        Side::Bare(in_flight, program) => {
            let mut command = Command::new(program);
            command.args([WORKERS.to_string(), in_flight.to_string()]);
            command.arg(&ground.roadstead).args(WORKER);
            (command, "bare.log")
        }
        Side::Peer | Side::PeerSaturated => {
            let mut command = Command::new("perl");
            command.arg(ground.root.join("xtask/peers/io_multiplex.pl"));
            if matches!(side, Side::PeerSaturated) {
                command.arg(format!("--pipeline={PIPELINE}"));
            }
            command.arg(WORKERS.to_string()).arg(&ground.roadstead).args(WORKER);
            (command, "peer.log")
        }
    };
    Server::start(command, &ground.folder.join(log))
}

/// Ours, from a configuration: a queue that refuses no line cannot be said in arguments.
fn saturated_server(ground: &Ground) -> Result<Command, Failure> {
    let file = ground.folder.join("saturated.toml");
    let text = format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"main\"\n\n\
         [pool.main]\nprogram = [{:?}, {:?}, {:?}]\nworkers = {{ min = {WORKERS}, max = {WORKERS} }}\n\
         pipeline = {PIPELINE}\nqueue = {{ length = 40000 }}\n",
        ground.roadstead, WORKER[0], WORKER[1]
    );
    fs::write(&file, text).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    let mut command = Command::new(&ground.roadstead);
    command.arg("serve").arg(&file);
    Ok(command)
}

/// A server whose programs run, and the programs.
pub(super) fn start(ground: &Ground, side: Side<'_>) -> Result<(Server, Vec<u32>), Failure> {
    let server = server(ground, side)?;
    let workers = server.workers(&WORKER, WORKERS)?;
    Ok((server, workers))
}

/// One run of one side.
fn window(
    ground: &Ground,
    shape: Shape,
    side: Side<'_>,
    count_calls: bool,
) -> Result<Window, Failure> {
    let (server, workers) = start(ground, side)?;
    let run =
        Run { workers, server, calls_to: count_calls.then(|| ground.folder.join("calls.txt")) };
    let window = run.window(ground, shape)?;
    run.server.stop()?;
    Ok(window)
}

struct Run {
    server: Server,
    workers: Vec<u32>,
    /// Where strace leaves its counts, if calls are counted in this run.
    calls_to: Option<PathBuf>,
}

impl Run {
    fn window(&self, ground: &Ground, shape: Shape) -> Result<Window, Failure> {
        let read = |error: io::Error| Failure::new(format!("/proc: {error}"));
        let own = self.server.own(&self.workers);
        let before_all = self.written().map_err(read)?;
        let full = process::descriptors(self.server.process()).map_err(read)?
            + usize::try_from(shape.connections).expect("a count of connections is small");
        let is_full = || process::descriptors(self.server.process()).is_ok_and(|open| open >= full);

        let mut load = Load::start(&ground.roadstead, &self.server.address, plan(ground, shape))?;
        if !wait_until(|| is_full() || !load.is_running()) || !load.is_running() {
            let said = self.server.said();
            let error = load.account().err().map(|failure| failure.output).unwrap_or_default();
            return Err(Failure::new(format!("not all clients were accepted\n{error}\n{said}")));
        }
        thread::sleep(SETTLE);

        let counting = match &self.calls_to {
            Some(to) => Some((Counting::start(&own, to)?, to)),
            None => None,
        };
        let began = Instant::now();
        let (cpu_before, written_before) = self.snapshot(&own).map_err(read)?;
        thread::sleep(Duration::from_secs(ground.seconds.into()));
        let (cpu_after, written_after) = self.snapshot(&own).map_err(read)?;
        let calls = counting.map(|(counting, to)| counting.finish(to)).transpose()?;
        if !is_full() || !load.is_running() {
            let took = began.elapsed().as_secs_f64() + SETTLE.as_secs_f64();
            let text = format!("clients left within the window; {took:.1} s after the last came");
            return Err(Failure::new(text));
        }

        let account = load.finish()?;
        let written = self.written().map_err(read)? - before_all;
        let bytes_a_line = written as f64 / account.answered as f64;
        let lines = (written_after - written_before) as f64 / bytes_a_line;
        let calls = calls.map(|calls| system_calls::shown(&calls, lines));
        Ok(Window { cpu_ns: cpu_after - cpu_before, lines, calls })
    }

    /// CPU time of the server's own processes, and bytes that its programs wrote.
    fn snapshot(&self, own: &[u32]) -> io::Result<(u64, u64)> {
        let mut cpu = 0;
        for process in own {
            cpu += process::cpu_ns(*process)?;
        }
        Ok((cpu, self.written()?))
    }

    fn written(&self) -> io::Result<u64> {
        self.workers.iter().map(|worker| process::written(*worker)).sum()
    }
}

fn plan(ground: &Ground, shape: Shape) -> Plan {
    Plan {
        connections: shape.connections,
        rate: shape.rate.map(f64::from),
        in_flight: shape.in_flight,
        seconds: ground.seconds + LONGEST,
        lines: "work",
        reply: "any",
    }
}
