//! The loop under an echo of 64 bytes: CPU time, system calls and memory, against a bare loop over
//! epoll, which is the limit, and against what people use.
//!
//! All that are active write, then all read: so every server finds the same batches.

use super::bench::Bench;
use crate::bench::order::Order;
use crate::bench::process;
use crate::bench::server::{Server, wait_until};
use crate::bench::statistics::Quartiles;
use crate::bench::system_calls::{self, Counting};
use crate::shell::Failure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
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
    pub(super) command: Vec<String>,
    connections_max: usize,
}

impl Peer {
    /// Whether it is the loop of this house.
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("event")
    }
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

/// What is counted once, in the last round.
struct Counted {
    calls: f64,
    calls_by_name: String,
    memory: f64,
}

/// All servers.
pub(super) fn peers(bench: &Bench, script: &Path) -> Vec<Peer> {
    let peer = |name, path: PathBuf, argument: &str, connections_max| {
        let mut command = vec![path.display().to_string()];
        command.extend((!argument.is_empty()).then(|| argument.to_owned()));
        Peer { name, command, connections_max }
    };
    let built = |name: &str| bench.built(name);
    let script = script.display().to_string();
    vec![
        peer("bare epoll", built("echo_bare"), "", usize::MAX),
        peer("event, epoll", built("echo"), "epoll", usize::MAX),
        peer("event, poll", built("echo"), "poll", LOOKING_MAX),
        peer("event, select", built("echo"), "select", LOOKING_MAX),
        peer("mio", built("echo_mio"), "", usize::MAX),
        peer("tokio", built("echo_tokio"), "", usize::MAX),
        peer("libevent", bench.folder.join("echo_libevent"), "", usize::MAX),
        peer("IO::Multiplex", "perl".into(), &script, 1000),
    ]
}

/// Those whose instructions are counted.
pub(super) fn counted(peers: &[Peer]) -> Vec<Peer> {
    let counted = ["bare epoll", "event, epoll", "mio", "tokio", "libevent"];
    peers.iter().filter(|peer| counted.contains(&peer.name)).cloned().collect()
}

/// The ways to be told of bytes, each in the bare loop, and ours beside them.
pub(super) fn triggers(bench: &Bench, connections: usize) -> Result<Shape, Failure> {
    let bare = |name, way: &str| Peer {
        name,
        command: vec![bench.built("echo_bare").display().to_string(), way.to_owned()],
        connections_max: usize::MAX,
    };
    let peers = [
        bare("level", "level"),
        bare("drain: edge, until there is no more", "drain"),
        bare("short: edge, a short read is the last", "short"),
        bare("rearm: registered anew after each report", "rearm"),
        Peer {
            name: "event, epoll",
            command: vec![bench.built("echo").display().to_string(), "epoll".to_owned()],
            connections_max: usize::MAX,
        },
    ];
    measure(bench, &peers, (connections, connections))
}

/// Measures all servers in one shape, so many rounds, in each of them in another random order.
pub(super) fn measure(
    bench: &Bench,
    peers: &[Peer],
    (connections, active): (usize, usize),
) -> Result<Shape, Failure> {
    let Bench { rounds, window, folder, seed, .. } = bench;
    let mut order = Order::new(*seed);
    let rounds = *rounds;
    let peers: Vec<&Peer> =
        peers.iter().filter(|peer| connections <= peer.connections_max).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
    let mut counted: Vec<Option<Counted>> = peers.iter().map(|_| None).collect();
    for round in 0..rounds {
        eprintln!("{connections} connections, {active} active: round {} of {rounds}", round + 1);
        for at in order.round(peers.len()) {
            let mut run = Run::start(peers[at], connections, active, folder)?;
            samples[at].push(run.window(*window)?);
            if round + 1 == rounds {
                let memory = run.memory;
                let (calls_by_name, calls) = run.count(folder)?;
                counted[at] = Some(Counted { calls, calls_by_name, memory });
            }
            run.server.stop()?;
        }
    }
    let of = |samples: &[Sample], what: fn(&Sample) -> f64| {
        Quartiles::of(&samples.iter().map(what).collect::<Vec<_>>())
    };
    let bare: Vec<f64> = samples[0].iter().map(|sample| sample.cpu_us).collect();
    let counted = counted.into_iter().flatten();
    let cells = peers.iter().zip(counted).zip(&samples).map(
        |((peer, Counted { calls, calls_by_name, memory }), one)| {
            let ratios: Vec<f64> =
                one.iter().zip(&bare).map(|(sample, bare)| sample.cpu_us / bare).collect();
            Cell {
                name: peer.name,
                cpu_us: of(one, |sample| sample.cpu_us),
                user_part: of(one, |sample| sample.user_part),
                by_bare: Quartiles::of(&ratios),
                calls,
                calls_by_name,
                memory,
            }
        },
    );
    Ok(Shape { connections, active, cells: cells.collect() })
}

/// A server with its connections.
struct Run {
    server: Server,
    clients: Clients,
    memory: f64,
}

/// Connections, of which some are active.
pub(super) struct Clients {
    streams: Vec<TcpStream>,
    pub(super) active: usize,
}

impl Clients {
    /// Connects; every connection has spoken once, so that none is only in the backlog.
    pub(super) fn connect(address: &str, connections: usize) -> io::Result<Self> {
        let streams: io::Result<Vec<TcpStream>> = (0..connections)
            .map(|_| {
                let client = TcpStream::connect(address)?;
                client.set_nodelay(true)?;
                client.set_read_timeout(Some(Duration::from_secs(60)))?;
                Ok(client)
            })
            .collect();
        let mut clients = Self { streams: streams?, active: connections };
        clients.exchange()?;
        Ok(clients)
    }

    /// One request on each active connection. They are spread over all.
    pub(super) fn exchange(&mut self) -> io::Result<()> {
        let step = self.streams.len() / self.active;
        for mut client in self.streams.iter().step_by(step).take(self.active) {
            client.write_all(&MESSAGE)?;
        }
        let mut answer = [0; MESSAGE.len()];
        for mut client in self.streams.iter().step_by(step).take(self.active) {
            client.read_exact(&mut answer)?;
        }
        Ok(())
    }
}

impl Run {
    fn start(
        peer: &Peer,
        connections: usize,
        active: usize,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(&peer.command[0]);
        command.args(&peer.command[1..]);
        let failed = |error| Failure::new(format!("{}: {error}", peer.name));
        // Server and clients share a core: what is measured does not depend on which core's cache
        // a connection happens to be in, and every server finds the same batches.
        share_a_core().map_err(failed)?;
        let server = Server::start(command, &folder.join("echo.log"))?;
        let process = server.process();
        let before = process::memory(process).map_err(failed)?;
        let mut clients = Clients::connect(&server.address, connections).map_err(failed)?;
        clients.active = active;
        let after = process::memory(process).map_err(failed)?;
        let memory = after.saturating_sub(before) as f64 / connections as f64;
        Ok(Self { server, clients, memory })
    }

    fn window(&mut self, window: Duration) -> Result<Sample, Failure> {
        let process = self.server.process();
        let failed = |error| Failure::new(format!("an echo: {error}"));
        let warm = Instant::now();
        while warm.elapsed() < window / 4 {
            self.clients.exchange().map_err(failed)?;
        }
        let cpu = process::cpu_ns(process).map_err(failed)?;
        let ticks = process::user_and_system(process).map_err(failed)?;
        let (begun, mut requests) = (Instant::now(), 0);
        while begun.elapsed() < window {
            self.clients.exchange().map_err(failed)?;
            requests += self.clients.active;
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
    fn count(&mut self, folder: &Path) -> Result<(String, f64), Failure> {
        let file = folder.join("echo.calls");
        let counting = Counting::start(&[self.server.process()], &file)?;
        if !wait_until(|| process::is_traced(self.server.process())) {
            return Err(Failure::new("strace does not attach"));
        }
        let rounds = COUNTED.div_ceil(self.clients.active);
        for _ in 0..rounds {
            self.clients.exchange().map_err(|error| Failure::new(format!("an echo: {error}")))?;
        }
        let calls = counting.finish(&file)?;
        let all: u64 = calls.iter().map(|(_, count)| count).sum();
        let requests = (rounds * self.clients.active) as f64;
        Ok((system_calls::shown(&calls, requests), all as f64 / requests))
    }
}

/// Keeps this thread, and what it starts, on the first core that it may use.
pub(super) fn share_a_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(first);
    Ok(sched_setaffinity(None, &one)?)
}
