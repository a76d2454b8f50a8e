//! The loop under an echo of 64 bytes: CPU time, system calls and memory, against a bare loop over
//! epoll, which is the limit, and against what people use.
//!
//! All that are active write, then all read: so every server finds the same batches.

use super::process;
use super::server::Server;
use super::statistics::Quartiles;
use super::system_calls::{self, Counting};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const MESSAGE: [u8; 64] = [b'm'; 64];
/// Connections of which this many are active.
pub(super) const SHAPES: &[(usize, usize)] = &[
    (1, 1),
    (100, 100),
    (1000, 1000),
    (9500, 9500),
    (1010, 10),
    (1100, 100),
    (9010, 10),
    (9100, 100),
];
/// Connections at which a server that looks at each of them at every turn is still measured.
const LOOKING_MAX: usize = 1100;
/// Requests of a window in which system calls are counted.
const COUNTED: usize = 4000;

/// What is measured.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    command: Vec<String>,
    connections_max: usize,
}

/// What one window showed, for one request.
#[derive(Clone, Copy, Debug)]
struct Sample {
    cpu_us: f64,
    user_part: f64,
}

/// What all windows of one server showed in one shape.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) name: &'static str,
    pub(super) cpu_us: Quartiles,
    /// The part of it that was spent outside the kernel.
    pub(super) user_part: Quartiles,
    /// How many times the bare loop's of the same round.
    pub(super) by_bare: Quartiles,
    pub(super) calls: f64,
    /// The same in words, call by call.
    pub(super) calls_by_name: String,
    /// Bytes of user memory that a connection costs, seen from a server that just started.
    pub(super) memory: f64,
}

#[derive(Debug)]
pub(super) struct Shape {
    pub(super) connections: usize,
    pub(super) active: usize,
    pub(super) cells: Vec<Cell>,
}

/// Builds all of them, as they are released.
pub(super) fn peers(workspace: &Workspace) -> Result<Vec<Peer>, Failure> {
    requirements::provide(requirements::BENCH_LOOP)?;
    eprintln!("building as released");
    let ours = ["build", "--release", "-p", "roadstead-event", "--examples"];
    shell::run(workspace.cargo(ours))?;
    shell::run(workspace.cargo(["build", "--release", "-p", "xtask", "--examples"]))?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let libevent = folder.join("echo_libevent");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&libevent);
    compiler.arg(workspace.root.join("xtask/peers/echo_libevent.c")).arg("-levent_core");
    shell::run(compiler)?;
    let built = |name: &str| workspace.built("release", &format!("examples/{name}"));
    let peer = |name, path: PathBuf, argument: &str, connections_max| {
        let mut command = vec![path.display().to_string()];
        command.extend((!argument.is_empty()).then(|| argument.to_owned()));
        Peer { name, command, connections_max }
    };
    let script = workspace.root.join("xtask/peers/echo_multiplex.pl").display().to_string();
    Ok(vec![
        peer("bare epoll", built("echo_bare"), "", usize::MAX),
        peer("event, epoll", built("echo"), "epoll", usize::MAX),
        peer("event, poll", built("echo"), "poll", LOOKING_MAX),
        peer("event, select", built("echo"), "select", LOOKING_MAX),
        peer("mio", built("echo_mio"), "", usize::MAX),
        peer("libevent", libevent, "", usize::MAX),
        peer("IO::Multiplex", "perl".into(), &script, 1000),
    ])
}

/// Measures all servers in one shape, in turn, so many rounds.
pub(super) fn measure(
    peers: &[Peer],
    shape: (usize, usize),
    rounds: u32,
    window: Duration,
    folder: &std::path::Path,
) -> Result<Shape, Failure> {
    let (connections, active) = shape;
    let peers: Vec<&Peer> =
        peers.iter().filter(|peer| connections <= peer.connections_max).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
    let mut cells = Vec::new();
    for round in 0..rounds {
        eprintln!("{connections} connections, {active} active: round {} of {rounds}", round + 1);
        for (peer, samples) in peers.iter().zip(&mut samples) {
            let mut run = Run::start(peer, connections, active, folder)?;
            samples.push(run.window(window)?);
            if round + 1 == rounds {
                let memory = run.memory;
                let (calls_by_name, calls) = run.count(folder)?;
                cells.push((peer.name, calls, calls_by_name, memory));
            }
            run.server.stop()?;
        }
    }
    let of = |samples: &[Sample], what: fn(&Sample) -> f64| {
        Quartiles::of(&samples.iter().map(what).collect::<Vec<_>>())
    };
    let bare: Vec<f64> = samples[0].iter().map(|sample| sample.cpu_us).collect();
    let cells =
        cells.into_iter().zip(&samples).map(|((name, calls, calls_by_name, memory), one)| {
            let ratios: Vec<f64> =
                one.iter().zip(&bare).map(|(sample, bare)| sample.cpu_us / bare).collect();
            Cell {
                name,
                cpu_us: of(one, |sample| sample.cpu_us),
                user_part: of(one, |sample| sample.user_part),
                by_bare: Quartiles::of(&ratios),
                calls,
                calls_by_name,
                memory,
            }
        });
    Ok(Shape { connections, active, cells: cells.collect() })
}

/// A server with its connections.
struct Run {
    server: Server,
    clients: Vec<TcpStream>,
    active: usize,
    memory: f64,
}

impl Run {
    fn start(
        peer: &Peer,
        connections: usize,
        active: usize,
        folder: &std::path::Path,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(&peer.command[0]);
        command.args(&peer.command[1..]);
        let server = Server::start(command, &folder.join("echo.log"))?;
        let process = server.process();
        let failed = |error| Failure::new(format!("{}: {error}", peer.name));
        let before = process::memory(process).map_err(failed)?;
        let clients: Vec<TcpStream> = (0..connections)
            .map(|_| {
                let client = TcpStream::connect(&server.address)?;
                client.set_nodelay(true)?;
                client.set_read_timeout(Some(Duration::from_secs(30)))?;
                Ok(client)
            })
            .collect::<std::io::Result<_>>()
            .map_err(failed)?;
        let mut run = Self { server, clients, active: connections, memory: 0.0 };
        // Every connection has spoken once, so that none is only in the backlog.
        run.exchange().map_err(failed)?;
        run.active = active;
        let after = process::memory(process).map_err(failed)?;
        run.memory = after.saturating_sub(before) as f64 / connections as f64;
        Ok(run)
    }

    /// One request on each active connection. They are spread over all.
    fn exchange(&mut self) -> std::io::Result<()> {
        let step = self.clients.len() / self.active;
        for mut client in self.clients.iter().step_by(step).take(self.active) {
            client.write_all(&MESSAGE)?;
        }
        let mut answer = [0; MESSAGE.len()];
        for mut client in self.clients.iter().step_by(step).take(self.active) {
            client.read_exact(&mut answer)?;
        }
        Ok(())
    }

    fn window(&mut self, window: Duration) -> Result<Sample, Failure> {
        let process = self.server.process();
        let failed = |error| Failure::new(format!("an echo: {error}"));
        let warm = Instant::now();
        while warm.elapsed() < window / 4 {
            self.exchange().map_err(failed)?;
        }
        let cpu = process::cpu_ns(process).map_err(failed)?;
        let ticks = process::user_and_system(process).map_err(failed)?;
        let (begun, mut requests) = (Instant::now(), 0);
        while begun.elapsed() < window {
            self.exchange().map_err(failed)?;
            requests += self.active;
        }
        let cpu = process::cpu_ns(process).map_err(failed)? - cpu;
        let (user, system) = process::user_and_system(process).map_err(failed)?;
        let (user, system) = (user - ticks.0, system - ticks.1);
        Ok(Sample {
            cpu_us: cpu as f64 / 1000.0 / requests as f64,
            user_part: user as f64 / (user + system).max(1) as f64,
        })
    }

    /// Counts system calls, in a window of its own.
    fn count(&mut self, folder: &std::path::Path) -> Result<(String, f64), Failure> {
        let file = folder.join("echo.calls");
        let counting = Counting::start(&[self.server.process()], &file)?;
        if !super::server::wait_until(|| process::is_traced(self.server.process())) {
            return Err(Failure::new("strace does not attach"));
        }
        let rounds = COUNTED.div_ceil(self.active);
        for _ in 0..rounds {
            self.exchange().map_err(|error| Failure::new(format!("an echo: {error}")))?;
        }
        let calls = counting.finish(&file)?;
        let all: u64 = calls.iter().map(|(_, count)| count).sum();
        let requests = (rounds * self.active) as f64;
        Ok((system_calls::shown(&calls, requests), all as f64 / requests))
    }
}
