//! The event loop with an echo of 64 bytes: CPU time, system calls and memory, against a bare loop over epoll, which is
//! the limit, and against common event libraries.
//!
//! All active clients write, then all read, so every server receives the same batches.

use crate::bench::clients::connect;
use crate::bench::ground::Ground;
use crate::bench::process;
use crate::bench::server::Server;
use crate::bench::system_calls;
use crate::bench::trial::Trial;
use crate::shell::{Failure, command};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const MESSAGE: [u8; 64] = [b'm'; 64];
/// The maximum number of connections for servers that check each connection in every turn.
const LOOKING_MAX: usize = 1100;
/// Requests of a window in which system calls are counted.
const COUNTED: usize = 4000;

/// A measured server.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) command: Vec<String>,
    connections_max: usize,
}

impl Peer {
    /// Returns whether the server uses the event loop of this workspace.
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("event")
    }
}

/// The results of all servers in one shape. The last sample of each also has the system calls and the memory.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) connections: usize,
    pub(super) active: usize,
    pub(super) trial: Trial,
}

impl Peer {
    fn new(name: &'static str, path: PathBuf, argument: &str, connections_max: usize) -> Self {
        let mut command = vec![path.display().to_string()];
        command.extend((!argument.is_empty()).then(|| argument.to_owned()));
        Self { name, command, connections_max }
    }
}

/// Returns all servers.
pub(super) fn peers(ground: &Ground) -> Vec<Peer> {
    let built = |name: &str| ground.example(name);
    let script = ground.root.join("xtask/peers/echo_multiplex.pl").display().to_string();
    vec![
        Peer::new("bare epoll", built("echo_bare"), "", usize::MAX),
        Peer::new("event, epoll", built("echo"), "epoll", usize::MAX),
        Peer::new("event, poll", built("echo"), "poll", LOOKING_MAX),
        Peer::new("event, select", built("echo"), "select", LOOKING_MAX),
        Peer::new("mio", built("echo_mio"), "", usize::MAX),
        Peer::new("tokio", built("echo_tokio"), "", usize::MAX),
        Peer::new("libevent", ground.folder.join("echo_libevent"), "", usize::MAX),
        Peer::new("IO::Multiplex", "perl".into(), &script, 1000),
    ]
}

/// Returns the servers whose instructions are counted.
pub(super) fn counted(peers: &[Peer]) -> Vec<Peer> {
    let counted = ["bare epoll", "event, epoll", "mio", "tokio", "libevent"];
    peers.iter().filter(|peer| counted.contains(&peer.name)).cloned().collect()
}

/// Measures the trigger modes of epoll, each in the bare loop, and our loop.
pub(super) fn triggers(ground: &Ground, connections: usize) -> Result<Shape, Failure> {
    let bare = |name, way| Peer::new(name, ground.example("echo_bare"), way, usize::MAX);
    let peers = [
        bare("level", "level"),
        bare("drain: edge, until there is no more", "drain"),
        bare("short: edge, a short read is the last", "short"),
        bare("rearm: registered again after each report", "rearm"),
        Peer::new("event, epoll", ground.example("echo"), "epoll", usize::MAX),
    ];
    measure(ground, &peers, (connections, connections))
}

/// Measures all servers in one shape over the rounds, in a random order in each.
pub(super) fn measure(
    ground: &Ground,
    peers: &[Peer],
    (connections, active): (usize, usize),
) -> Result<Shape, Failure> {
    let peers: Vec<&Peer> =
        peers.iter().filter(|peer| connections <= peer.connections_max).collect();
    let names: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
    let name = format!("{connections} connections, {active} active");
    let trial = ground.rounds(&name, &names, |round, at| {
        let mut run = Run::start(ground, peers[at], connections, active)?;
        let mut sample = run.window(ground.window)?;
        if round + 1 == ground.rounds {
            run.count(ground, &mut sample)?;
        }
        run.server.stop()?;
        Ok(sample)
    })?;
    Ok(Shape { connections, active, trial })
}

/// A server with its connections.
struct Run {
    server: Server,
    clients: Clients,
    /// User memory per connection in bytes, compared with a freshly started server.
    memory: f64,
}

/// Connections, some of which are active.
pub(super) struct Clients {
    streams: Vec<TcpStream>,
    pub(super) active: usize,
}

impl Clients {
    /// Opens the connections. Each has exchanged data once, so that none is only in the backlog.
    pub(super) fn connect(address: &str, connections: usize) -> io::Result<Self> {
        let streams = (0..connections).map(|_| connect(address)).collect::<io::Result<_>>()?;
        let mut clients = Self { streams, active: connections };
        clients.exchange()?;
        Ok(clients)
    }

    /// Sends one request on each active connection. The active connections are spread over all.
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
        ground: &Ground,
        peer: &Peer,
        connections: usize,
        active: usize,
    ) -> Result<Self, Failure> {
        // Server and clients share a core. So the result does not depend on the core whose cache holds a connection,
        // and every server receives the same batches.
        share_a_core().map_err(Failure::at("affinity"))?;
        let server = ground.start(command(&peer.command[0], &peer.command[1..]), "echo")?;
        let process = server.process();
        let before = process::memory(process)?;
        let mut clients =
            Clients::connect(&server.address, connections).map_err(Failure::at(peer.name))?;
        clients.active = active;
        let grown = process::memory(process)?.saturating_sub(before);
        Ok(Self { server, clients, memory: grown as f64 / connections as f64 })
    }

    /// Returns the CPU time per request, and its share in user space.
    fn window(&mut self, window: Duration) -> Result<Value, Failure> {
        let process = self.server.process();
        self.exchange_for(window / 4)?;
        let ticks = process::user_and_system(process)?;
        let (cpu_us, requests) = process::cpu_us(&[process], || self.exchange_for(window))?;
        let [user, system] = process::user_and_system(process)?;
        let (user, system) = (user - ticks[0], system - ticks[1]);
        let user_part = user as f64 / (user + system).max(1) as f64;
        Ok(json!({ "cpu_us": cpu_us / requests as f64, "user_part": user_part }))
    }

    /// Exchanges requests on all active connections for this time. Returns their number.
    fn exchange_for(&mut self, window: Duration) -> Result<usize, Failure> {
        let (begun, mut requests) = (Instant::now(), 0);
        while begun.elapsed() < window {
            self.clients.exchange().map_err(Failure::at("an echo"))?;
            requests += self.clients.active;
        }
        Ok(requests)
    }

    /// Counts system calls in a separate window, and adds them and the memory to a sample.
    fn count(&mut self, ground: &Ground, sample: &mut Value) -> Result<(), Failure> {
        let rounds = COUNTED.div_ceil(self.clients.active);
        let (process, clients) = (self.server.process(), &mut self.clients);
        let (calls, ()) = system_calls::counted(&[process], &ground.folder, || {
            (0..rounds).try_for_each(|_| clients.exchange()).map_err(Failure::at("an echo"))
        })?;
        let requests = (rounds * self.clients.active) as f64;
        sample["calls"] = (system_calls::all(&calls) as f64 / requests).into();
        sample["calls_by_name"] = system_calls::shown(&calls, requests).into();
        sample["memory"] = self.memory.into();
        Ok(())
    }
}

/// Keeps this thread and its child processes on the first core that it may use.
pub(super) fn share_a_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(first);
    Ok(sched_setaffinity(None, &one)?)
}
