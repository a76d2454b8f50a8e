//! NATS servers with JetStream on the loopback, as real processes. They end with the test.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::untested::untested;

/// The maximum time until the servers have a leader.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Servers of one cluster.
#[derive(Debug)]
pub(crate) struct Nats {
    program: PathBuf,
    folder: tempfile::TempDir,
    servers: Vec<Server>,
    /// Lines at the end of the configuration of each server.
    pub(crate) lines: String,
}

#[derive(Debug)]
struct Server {
    ports: Ports,
    process: Option<Child>,
    /// The ports at which it reaches the others, if these are not their own.
    routes: Option<Vec<u16>>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    route: u16,
    monitor: u16,
}

/// The server that `cargo xtask test` installs, or `nats-server` of the search path. `None`: there is none, which is
/// reported.
pub(crate) fn program() -> Option<PathBuf> {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/nats-server");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&folders).map(|folder| folder.join("nats-server"));
    let program = std::iter::once(installed).chain(others).find(|path| path.is_file());
    if program.is_none() {
        untested(
            "bindings shared over NATS",
            "there is no nats-server",
            "install Go, then run `cargo xtask test --only tools`",
        );
    }
    program
}

/// A port that was free a moment ago. Servers are started again at their ports, so these are below the ports that the
/// kernel gives to connections.
fn port() -> u16 {
    const PORTS: std::ops::Range<u32> = 10_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(7919);
    loop {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + number % (PORTS.end - PORTS.start)).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Nats {
    /// Starts `count` servers and waits for their leader. `None`: there is no nats-server, which is reported.
    pub(crate) fn start(count: usize) -> Option<Self> {
        let mut nats = Self::prepare(count)?;
        nats.run_all();
        Some(nats)
    }

    /// Chooses the ports of `count` servers, and starts none.
    pub(crate) fn prepare(count: usize) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let ports = || Ports { client: port(), route: port(), monitor: port() };
        let server = |_| Server { ports: ports(), process: None, routes: None };
        let servers = (0..count).map(server).collect();
        Some(Self { program, folder, servers, lines: String::new() })
    }

    /// Starts all servers that do not run, and waits for their leader.
    pub(crate) fn run_all(&mut self) {
        for number in 0..self.servers.len() {
            if self.servers[number].process.is_none() {
                self.run(number);
            }
        }
        self.wait_until_ready();
    }

    /// The addresses for clients.
    pub(crate) fn urls(&self) -> Vec<String> {
        let url = |server: &Server| format!("nats://127.0.0.1:{}", server.ports.client);
        self.servers.iter().map(url).collect()
    }

    /// The ports for clients.
    pub(crate) fn client_ports(&self) -> Vec<u16> {
        self.servers.iter().map(|it| it.ports.client).collect()
    }

    /// The ports for other servers.
    pub(crate) fn route_ports(&self) -> Vec<u16> {
        self.servers.iter().map(|it| it.ports.route).collect()
    }

    /// Lets a server reach the others, by number, at these ports only.
    pub(crate) fn set_routes(&mut self, number: usize, ports: Vec<u16>) {
        self.servers[number].routes = Some(ports);
    }

    /// The folder of the test: `0.conf`, `0.log`, and `0` with the files of the first server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn write_configuration(&self, number: usize) -> PathBuf {
        let Server { ports: Ports { client, route, monitor }, routes, .. } = &self.servers[number];
        let folder = self.folder.path();
        let mut text = format!(
            "server_name: n{number}\nlisten: 127.0.0.1:{client}\nhttp: 127.0.0.1:{monitor}\n\
             ping_interval: \"1s\"\nping_max: 2\n\
             jetstream {{ store_dir: \"{}/{number}\", max_mem: 1G, max_file: 1G }}\n",
            folder.display()
        );
        if self.servers.len() > 1 {
            // A server must not find others by what a third one tells it, if a test controls its links.
            let advertise = if routes.is_some() { ", advertise: \"127.0.0.1:1\"" } else { "" };
            let routes = routes.clone().unwrap_or_else(|| self.route_ports());
            let routes = routes.iter().map(|port| format!("nats://127.0.0.1:{port}"));
            let routes: Vec<_> = routes.collect();
            text.push_str(&format!(
                "cluster {{ name: test, listen: 127.0.0.1:{route}{advertise}, routes: [{}] }}\n",
                routes.join(", ")
            ));
        }
        text.push_str(&self.lines);
        let file = folder.join(format!("{number}.conf"));
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Starts a server that does not run. Its file store is kept, its memory is empty.
    pub(crate) fn run(&mut self, number: usize) {
        let file = self.write_configuration(number);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join(format!("{number}.log")))
            .unwrap();
        let process = Command::new(&self.program)
            .arg("-c")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.servers[number].process = Some(process);
    }

    /// Lets all servers read their configuration again, with other `lines`.
    pub(crate) fn reload(&mut self, lines: String) {
        self.lines = lines;
        for number in 0..self.servers.len() {
            self.write_configuration(number);
            self.signal(number, rustix::process::Signal::HUP);
        }
    }

    /// Sends a signal to a server that runs.
    pub(crate) fn signal(&self, number: usize, signal: rustix::process::Signal) {
        let process = self.servers[number].process.as_ref().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(process), signal).unwrap();
    }

    /// The number of clients that are connected to the servers.
    pub(crate) fn connections(&self) -> u64 {
        let count = |server: &Server| {
            let page = read_json(server.ports.monitor, "/connz");
            page.and_then(|page| page["num_connections"].as_u64()).unwrap_or_default()
        };
        self.servers.iter().map(count).sum()
    }

    /// The server that leads a stream, as the servers say; `None`: none of those that run leads it.
    pub(crate) fn leader(&self, stream: &str) -> Option<usize> {
        let leads = |number: &usize| {
            let monitor = self.servers[*number].ports.monitor;
            let Some(json) = read_json(monitor, "/jsz?accounts=true&streams=true") else {
                return false;
            };
            let accounts = json["account_details"].as_array().into_iter().flatten();
            let streams = accounts.filter_map(|it| it["stream_detail"].as_array()).flatten();
            let mut leaders =
                streams.filter(|it| it["name"] == stream).map(|it| &it["cluster"]["leader"]);
            leaders.any(|leader| *leader == format!("n{number}"))
        };
        (0..self.servers.len())
            .find(|number| self.servers[*number].process.is_some() && leads(number))
    }

    /// Kills a server.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.servers[number].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Removes the file store of a server that does not run.
    pub(crate) fn wipe(&self, number: usize) {
        std::fs::remove_dir_all(self.folder.path().join(number.to_string())).unwrap();
    }

    /// Waits until all running servers are current and have a leader.
    pub(crate) fn wait_until_ready(&self) {
        let start = Instant::now();
        for (number, server) in self.servers.iter().enumerate() {
            while server.process.is_some() && !is_healthy(server.ports.monitor) {
                let log = self.folder.path().join(format!("{number}.log"));
                let log = || std::fs::read_to_string(&log).unwrap();
                assert!(start.elapsed() < READY_TIMEOUT, "server {number}:\n{}", log());
                std::thread::park_timeout(Duration::from_millis(50));
            }
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|number| self.kill(number));
    }
}

fn is_healthy(port: u16) -> bool {
    read_page(port, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.0 200"))
}

/// Reads a page of the monitor of a server. `None`: it does not answer.
fn read_page(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn read_json(port: u16, path: &str) -> Option<serde_json::Value> {
    serde_json::from_str(read_page(port, path)?.split_once("\r\n\r\n")?.1).ok()
}
