//! The cost of a request at 10, 100, 1000 and 9500 connections, with the same number of requests per second in total:
//! ours with programs, and the echo of a bare loop with the same clients. If the work of a loop does not depend on idle
//! connections, its cost grows no more than that of the bare loop.

use super::ground::Ground;
use super::lines::{self, Side};
use super::load::{Load, Plan};
use super::page::TEXT;
use super::process;
use super::server::Server;
use super::statistics::Quartiles;
use super::system_calls;
use super::template::row;
use crate::shell::Failure;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS: [u32; 4] = [10, 100, 1000, 9500];
/// Requests per second on all connections.
const RATE: u32 = 9500;
/// The rate if calls are counted: strace stops the server at each call, and the server must keep up.
const RATE_COUNTED: u32 = 950;
/// The time between the last accept and the window.
const SETTLE: Duration = Duration::from_millis(500);
const NAMES: [&str; 2] = ["roadstead", "bare epoll"];

/// The cost of one request, by the number of connections.
type Sample = [f64; CONNECTIONS.len()];

/// What is counted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Cpu,
    Calls,
    Instructions,
}

/// Measures all rounds. Returns the section of the page.
pub(super) fn measure(ground: &Ground, bare: &Path) -> Result<String, Failure> {
    let cpu = |side| move || all(ground, side, bare, What::Cpu);
    let cpu = ground.pairs("growth", cpu(0), cpu(1))?;
    let calls = [all(ground, 0, bare, What::Calls)?, all(ground, 1, bare, What::Calls)?];
    let rows = (0..CONNECTIONS.len()).map(|at| {
        let mut cells = vec![CONNECTIONS[at].to_string()];
        for samples in &cpu {
            let growth = |sample: &Sample| sample[at] / sample[0];
            cells.push(shown(Quartiles::of_each(samples, |sample| sample[at])));
            cells.push(shown(Quartiles::of_each(samples, growth)));
        }
        cells.extend(calls.iter().map(|side| format!("{:.2}", side[at])));
        line(&cells)
    });
    let rows: String = rows.collect();
    let (first, rates) = (CONNECTIONS[0], [RATE, RATE_COUNTED]);
    Ok(TEXT.fill(
        "growth",
        &[("rate", &rates[0]), ("rate_counted", &rates[1]), ("first", &first), ("rows", &rows)],
    ))
}

/// Counts instructions per request in one run of each side at each number of connections. They do not depend on other
/// load of the machine. Returns the section of the page.
pub(super) fn instructions(ground: &Ground, bare: &Path) -> Result<String, Failure> {
    let what = What::Instructions;
    let counts = [all(ground, 0, bare, what)?, all(ground, 1, bare, what)?];
    let rows = (0..CONNECTIONS.len()).map(|at| {
        let of = |side: &Sample| [format!("{:.0}", side[at]), format!("{:.2}", side[at] / side[0])];
        let cells = [vec![CONNECTIONS[at].to_string()], counts.iter().flat_map(of).collect()];
        line(&cells.concat())
    });
    let rows: String = rows.collect();
    let (seconds, first) = (ground.seconds(), CONNECTIONS[0]);
    Ok(TEXT.fill("instructions", &[("seconds", &seconds), ("first", &first), ("rows", &rows)]))
}

fn line(cells: &[String]) -> String {
    row(&cells.iter().map(|cell| cell as _).collect::<Vec<_>>())
}

fn shown(of: Quartiles) -> String {
    format!("{:.2} ({:.2}–{:.2})", of.median, of.low, of.high)
}

/// Runs a side at each number of connections.
fn all(ground: &Ground, side: usize, bare: &Path, what: What) -> Result<Sample, Failure> {
    let mut sample = Sample::default();
    for (count, connections) in sample.iter_mut().zip(CONNECTIONS) {
        *count = one(ground, server(ground, side, bare)?, connections, what)?;
        eprintln!("{}, {connections}, {what:?}: {count:.2}", NAMES[side]);
    }
    Ok(sample)
}

/// Starts a server and its programs.
fn server(ground: &Ground, side: usize, bare: &Path) -> Result<(Server, Vec<u32>), Failure> {
    if side == 0 {
        return lines::start(ground, Side::Ours);
    }
    Ok((ground.start(Command::new(bare), "bare")?, Vec::new()))
}

/// Returns the CPU time in µs, the system calls or the instructions per request in one run.
fn one(
    ground: &Ground,
    (server, workers): (Server, Vec<u32>),
    connections: u32,
    what: What,
) -> Result<f64, Failure> {
    let own = server.own(&workers);
    let rate = f64::from(if what == What::Calls { RATE_COUNTED } else { RATE });
    let plan = Plan {
        connections,
        rate: Some(rate / f64::from(connections)),
        in_flight: RATE,
        seconds: ground.seconds() + lines::LONGEST,
        lines: "work",
        reply: "any",
    };
    // If all lines were answered, the server kept up.
    let (sum, _) = Load::during(ground, &server, plan, SETTLE, || match what {
        What::Cpu => a_second(ground, |rest| process::cpu_us(&own, rest)),
        What::Calls => a_second(ground, |rest| {
            let (calls, took) = system_calls::counted(&own, &ground.folder, rest)?;
            Ok((system_calls::all(&calls) as f64, took))
        }),
        What::Instructions => counted(&own, ground.window),
    })?;
    server.stop()?;
    Ok(sum / rate)
}

/// Waits for the end of the window. Returns the elapsed seconds.
type Rest<'a> = &'a dyn Fn() -> Result<f64, Failure>;

/// Returns the count per second in the window.
fn a_second(
    ground: &Ground,
    count: impl FnOnce(Rest<'_>) -> Result<(f64, f64), Failure>,
) -> Result<f64, Failure> {
    let (sum, seconds) = count(&|| {
        let begun = Instant::now();
        thread::sleep(ground.window);
        Ok(begun.elapsed().as_secs_f64())
    })?;
    Ok(sum / seconds)
}

/// Counts the user-space instructions of these processes per second of the window.
fn counted(own: &[u32], window: Duration) -> Result<f64, Failure> {
    let processes: Vec<String> = own.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", "instructions:u", "-p", &processes.join(","), "--"]);
    command.args(["sleep", &window.as_secs_f64().to_string()]);
    let output = command.output().map_err(Failure::at("perf"))?;
    // perf prints its counts to standard error: `COUNT,,instructions:u,…`.
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split(',').next()?.parse::<f64>().ok());
    let count =
        count.ok_or_else(|| Failure::new(format!("perf counts no instructions: {said}")))?;
    Ok(count / window.as_secs_f64())
}
