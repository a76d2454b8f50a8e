//! The cost of a request at 10, 100, 1000 and 9500 connections, with the same number of requests per second in total:
//! ours with programs, and the echo of a bare loop with the same clients. If the work of a loop does not depend on idle
//! connections, its cost grows no more than that of the bare loop.

use super::comparison::TEXT;
use super::driver::Part;
use super::ground::Ground;
use super::lines::{self, Side};
use super::load::{Load, Plan};
use super::process;
use super::server::Server;
use super::statistics::Quartiles;
use super::system_calls;
use crate::shell::{Failure, command};
use serde_json::{Map, Value};
use std::fmt::Display;
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

/// What is counted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Cpu,
    Calls,
    Instructions,
}

/// Measures all rounds of CPU time, and system calls once.
pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let cpu = ground.rounds("growth", &NAMES, |_, at| all(ground, at, What::Cpu))?;
    let calls = [all(ground, 0, What::Calls)?, all(ground, 1, What::Calls)?];
    let rows = CONNECTIONS.map(|connections| {
        let (key, first) = (connections.to_string(), CONNECTIONS[0].to_string());
        let mut cells = vec![key.clone()];
        for name in NAMES {
            let growth = Quartiles::ratio(&cpu.samples(name, &key), &cpu.samples(name, &first));
            cells.extend([cpu.of(name, &key), growth].map(shown));
        }
        cells.extend(
            calls.iter().map(|side| format!("{:.2}", side[&key].as_f64().unwrap_or(f64::NAN))),
        );
        line(&cells)
    });
    let values: [(&str, &dyn Display); 4] = [
        ("rate", &RATE),
        ("rate_counted", &RATE_COUNTED),
        ("first", &CONNECTIONS[0]),
        ("rows", &rows.concat()),
    ];
    Ok(Part::text(TEXT.fill("growth", &values)))
}

/// Counts instructions per request in one run of each side at each number of connections. They do not depend on other
/// load of the machine.
pub(super) fn instructions(ground: &Ground) -> Result<Part, Failure> {
    let counts = [all(ground, 0, What::Instructions)?, all(ground, 1, What::Instructions)?];
    let rows = CONNECTIONS.map(|connections| {
        let mut cells = vec![connections.to_string()];
        for side in &counts {
            let of = |connections: u32| side[connections.to_string()].as_f64().unwrap_or(f64::NAN);
            let growth = of(connections) / of(CONNECTIONS[0]);
            cells.extend([format!("{:.0}", of(connections)), format!("{growth:.2}")]);
        }
        line(&cells)
    });
    let values: [(&str, &dyn Display); 3] =
        [("seconds", &ground.seconds()), ("first", &CONNECTIONS[0]), ("rows", &rows.concat())];
    Ok(Part::text(TEXT.fill("instructions", &values)))
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn shown(of: Quartiles) -> String {
    format!("{:.2} ({:.2}–{:.2})", of.median, of.low, of.high)
}

/// Runs a side at each number of connections. Returns the cost of a request at each.
fn all(ground: &Ground, side: usize, what: What) -> Result<Value, Failure> {
    let mut sample = Map::new();
    for connections in CONNECTIONS {
        let count = one(ground, server(ground, side)?, connections, what)?;
        eprintln!("{}, {connections}, {what:?}: {count:.2}", NAMES[side]);
        sample.insert(connections.to_string(), count.into());
    }
    Ok(sample.into())
}

/// Starts a server and its programs.
fn server(ground: &Ground, side: usize) -> Result<(Server, Vec<u32>), Failure> {
    if side == 0 {
        return lines::start(ground, Side::Ours);
    }
    Ok((ground.start(Command::new(ground.example("echo_bare")), "bare")?, Vec::new()))
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
    let processes = processes.join(",");
    let mut command =
        command("perf", ["stat", "-x,", "-e", "instructions:u", "-p", &processes, "--", "sleep"]);
    let output =
        command.arg(window.as_secs_f64().to_string()).output().map_err(Failure::at("perf"))?;
    // perf prints its counts to standard error: `COUNT,,instructions:u,…`.
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split(',').next()?.parse::<f64>().ok());
    let count =
        count.ok_or_else(|| Failure::new(format!("perf counts no instructions: {said}")))?;
    Ok(count / window.as_secs_f64())
}
