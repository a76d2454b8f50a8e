//! What a request costs at 10, 100, 1000 and 9500 connections, with the same number of requests a second
//! in all: ours with programs behind it, and a bare loop's echo under the same clients. A loop whose work
//! does not depend on the connections that are idle grows no more than the bare one.

use super::ground::Ground;
use super::lines::{self, Side};
use super::load::{Load, Plan};
use super::process;
use super::server::{Server, wait_until};
use super::statistics::Quartiles;
use super::system_calls::Counting;
use crate::shell::Failure;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS: [u32; 4] = [10, 100, 1000, 9500];
/// Requests a second on all connections.
const RATE: u32 = 9500;
/// The same where calls are counted: strace stops the server at each, and it must keep the pace.
const RATE_COUNTED: u32 = 950;
/// Time between the last accept and the window.
const SETTLE: Duration = Duration::from_millis(500);
const NAMES: [&str; 2] = ["roadstead", "bare epoll"];

/// What the rounds of one side showed at one number of connections, for one request.
#[derive(Clone, Debug, Default)]
struct Cell {
    cpu_us: Vec<f64>,
    calls: f64,
}

/// One side, by the number of connections.
type Cells = [Cell; CONNECTIONS.len()];

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Cpu,
    Calls,
    Instructions,
}

/// All rounds; gives the section of the page.
pub(super) fn measure(ground: &Ground, bare: &Path) -> Result<String, Failure> {
    let mut all: [Cells; 2] = Default::default();
    for round in 0..ground.rounds {
        for (at, connections) in CONNECTIONS.into_iter().enumerate() {
            for turn in 0..2 {
                let side = (turn + round as usize) % 2;
                let cpu_us = sample(ground, server(ground, side, bare)?, connections, What::Cpu)?;
                let (name, round, rounds) = (NAMES[side], round + 1, ground.rounds);
                eprintln!("{name}, {connections}: round {round} of {rounds}: {cpu_us:.2} µs");
                all[side][at].cpu_us.push(cpu_us);
            }
        }
    }
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        for (side, cells) in all.iter_mut().enumerate() {
            let server = server(ground, side, bare)?;
            cells[at].calls = sample(ground, server, connections, What::Calls)?;
        }
    }
    Ok(section(&all))
}

/// Instructions a request, counted in one run of each side at each number of connections; gives the
/// section of the page. They do not depend on what else the machine does.
pub(super) fn instructions(ground: &Ground, bare: &Path) -> Result<String, Failure> {
    let mut all = [[0.0; CONNECTIONS.len()]; 2];
    for (side, counts) in all.iter_mut().enumerate() {
        for (at, connections) in CONNECTIONS.into_iter().enumerate() {
            let server = server(ground, side, bare)?;
            counts[at] = sample(ground, server, connections, What::Instructions)?;
            eprintln!("{}, {connections}: {:.0} instructions", NAMES[side], counts[at]);
        }
    }
    let mut text = format!(
        "## Instructions with the connections\n\n\
         The loads of *Growth with the connections*, of the same processes, outside the kernel, counted by perf in one window of \
         {} s each.\n\n\
         | Connections | Roadstead | × at {first} | bare loop | × at {first} |\n|---|---|---|---|---|\n",
        ground.seconds,
        first = CONNECTIONS[0],
    );
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        text.push_str(&format!("| {connections} |"));
        for counts in &all {
            text.push_str(&format!(" {:.0} | {:.2} |", counts[at], counts[at] / counts[0]));
        }
        text.push('\n');
    }
    Ok(text)
}

/// A server and the programs behind it.
fn server(ground: &Ground, side: usize, bare: &Path) -> Result<(Server, Vec<u32>), Failure> {
    if side == 0 {
        return lines::start(ground, Side::Ours);
    }
    Ok((Server::start(Command::new(bare), &ground.folder.join("bare.log"))?, Vec::new()))
}

/// CPU µs, or system calls, of a request in one run.
fn sample(
    ground: &Ground,
    (server, workers): (Server, Vec<u32>),
    connections: u32,
    what: What,
) -> Result<f64, Failure> {
    let own = server.own(&workers);
    let open = || process::descriptors(server.process()).unwrap_or_default();
    let full = open() + usize::try_from(connections).expect("a count of connections is small");
    let rate = f64::from(if what == What::Calls { RATE_COUNTED } else { RATE });
    let plan = Plan {
        connections,
        rate: Some(rate / f64::from(connections)),
        in_flight: RATE,
        seconds: ground.seconds + lines::LONGEST,
        lines: "work",
        reply: "any",
    };
    let mut load = Load::start(&ground.roadstead, &server.address, plan)?;
    if !wait_until(|| open() >= full || !load.is_running()) || !load.is_running() {
        return Err(Failure::new(format!("not all clients were accepted\n{}", server.said())));
    }
    thread::sleep(SETTLE);
    let window = Duration::from_secs(ground.seconds.into());
    let sum = match what {
        What::Cpu => cpu_us(&own, window),
        What::Calls => calls(&own, window, &ground.folder.join("calls.txt")),
        What::Instructions => counted(&own, window),
    }?;
    if open() < full || !load.is_running() {
        return Err(Failure::new("clients left within the window"));
    }
    // That all were answered shows that the pace was kept.
    load.finish()?;
    server.stop()?;
    Ok(sum / rate)
}

/// CPU µs of these processes in a second of the window.
fn cpu_us(own: &[u32], window: Duration) -> Result<f64, Failure> {
    let cpu = || {
        let sum = own.iter().map(|one| process::cpu_ns(*one)).sum::<io::Result<u64>>();
        sum.map_err(|error| Failure::new(format!("/proc: {error}")))
    };
    let (before, begun) = (cpu()?, Instant::now());
    thread::sleep(window);
    Ok((cpu()? - before) as f64 / 1e3 / begun.elapsed().as_secs_f64())
}

/// Instructions of these processes outside the kernel in a second of the window.
fn counted(own: &[u32], window: Duration) -> Result<f64, Failure> {
    let processes: Vec<String> = own.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", "instructions:u", "-p", &processes.join(","), "--"]);
    command.args(["sleep", &window.as_secs_f64().to_string()]);
    let output = command.output().map_err(|error| Failure::new(format!("perf: {error}")))?;
    // It tells its counts on standard error: `COUNT,,instructions:u,…`.
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split(',').next()?.parse::<f64>().ok());
    let count =
        count.ok_or_else(|| Failure::new(format!("perf counts no instructions: {said}")))?;
    Ok(count / window.as_secs_f64())
}

/// System calls of these processes in a second of the window.
fn calls(own: &[u32], window: Duration, file: &Path) -> Result<f64, Failure> {
    let counting = Counting::start(own, file)?;
    if !wait_until(|| own.iter().all(|one| process::is_traced(*one))) {
        return Err(Failure::new("strace does not attach"));
    }
    let begun = Instant::now();
    thread::sleep(window);
    let took = begun.elapsed().as_secs_f64();
    let all: u64 = counting.finish(file)?.iter().map(|(_, count)| count).sum();
    Ok(all as f64 / took)
}

fn section(all: &[Cells; 2]) -> String {
    let mut text = format!(
        "## Growth with the connections\n\n\
         {RATE} lines a second in all, paced, on more and more connections: the daemon of *Lines to programs* beside \
         `crates/event/examples/echo_bare.rs`, which has no programs behind it, under the same clients. What counts is how each \
         grows, within a round. Requests are counted by the pace, which each run must have kept. System calls are counted by strace in \
         a further run at {RATE_COUNTED} a second.\n\n\
         | Connections | CPU µs a request, Roadstead | × at {first} | bare loop | × at {first} | system calls a request, Roadstead | bare loop |\n\
         |---|---|---|---|---|---|---|\n",
        first = CONNECTIONS[0],
    );
    let shown = |of: Quartiles| format!("{:.2} ({:.2}–{:.2})", of.median, of.low, of.high);
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        text.push_str(&format!("| {connections} |"));
        for side in all {
            let cpu = &side[at].cpu_us;
            let growth: Vec<f64> =
                cpu.iter().zip(&side[0].cpu_us).map(|(at, first)| at / first).collect();
            let [cpu, growth] = [cpu, &growth].map(|samples| shown(Quartiles::of(samples)));
            text.push_str(&format!(" {cpu} | {growth} |"));
        }
        for side in all {
            text.push_str(&format!(" {:.2} |", side[at].calls));
        }
        text.push('\n');
    }
    text
}
